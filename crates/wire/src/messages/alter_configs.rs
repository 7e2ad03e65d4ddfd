//! AlterConfigs (33): replaces all settings of a resource; those not named fall back to their defaults.

use crate::error_code::ErrorCode;

message! {
    /// The new settings.
    pub struct AlterConfigsRequest {
        /// Of what.
        resources: Vec<AlterConfigsRequestResource> = all();
        /// Whether to check alone.
        validate_only: bool = all();
    }
    /// A resource and its settings.
    pub struct AlterConfigsRequestResource {
        /// 2 a topic, 4 a broker.
        resource_type: i8 = all();
        /// Its name.
        resource_name: String = all();
        /// Its settings.
        configs: Vec<AlterConfigsRequestConfig> = all();
    }
    /// A setting.
    pub struct AlterConfigsRequestConfig {
        /// Its name.
        name: String = all();
        /// Its value.
        value: Option<String> = all().nullable(0);
    }
    /// What became of them.
    pub struct AlterConfigsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// One entry for each resource.
        responses: Vec<AlterConfigsResponseResource> = all();
    }
    /// What became of one resource.
    pub struct AlterConfigsResponseResource {
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
api! { AlterConfigsRequest => AlterConfigsResponse: AlterConfigs, 0..=2, flexible 2; }
