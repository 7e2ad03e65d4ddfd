//! IncrementalAlterConfigs (44): changes settings one by one (KIP-339).

use crate::error_code::ErrorCode;

message! {
    /// The changes.
    pub struct IncrementalAlterConfigsRequest {
        /// Of what.
        resources: Vec<IncrementalAlterConfigsRequestResource> = all();
        /// Whether to check alone.
        validate_only: bool = all();
    }
    /// A resource and its changes.
    pub struct IncrementalAlterConfigsRequestResource {
        /// 2 a topic, 4 a broker, 8 a broker's loggers, 16 client metrics, 32 a group.
        resource_type: i8 = all();
        /// Its name.
        resource_name: String = all();
        /// The changes.
        configs: Vec<IncrementalAlterConfigsRequestConfig> = all();
    }
    /// A change.
    pub struct IncrementalAlterConfigsRequestConfig {
        /// The setting's name.
        name: String = all();
        /// 0 sets, 1 deletes, 2 appends to a list, 3 takes from a list.
        config_operation: i8 = all();
        /// The value.
        value: Option<String> = all().nullable(0);
    }
    /// What became of them.
    pub struct IncrementalAlterConfigsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// One entry for each resource.
        responses: Vec<IncrementalAlterConfigsResponseResource> = all();
    }
    /// What became of one resource.
    pub struct IncrementalAlterConfigsResponseResource {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = all().nullable(0);
        /// The resource's type.
        resource_type: i8 = all();
        /// Its name.
        resource_name: String = all();
    }
}
api! { IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse: IncrementalAlterConfigs, 0..=1, flexible 1; }
