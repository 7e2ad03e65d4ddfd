//! ApiVersions (18): what a broker serves. The supported features (KIP-584) also name what a kohort broker can do beyond Kafka.

use crate::error_code::ErrorCode;

message! {
    /// Who asks (KIP-511).
    pub struct ApiVersionsRequest {
        /// The client library's name.
        client_software_name: String = since(3);
        /// Its version.
        client_software_version: String = since(3);
    }
    /// What is served.
    pub struct ApiVersionsResponse {
        /// UNSUPPORTED_VERSION, in the layout of v0, where the request's version is not served.
        error_code: ErrorCode = all();
        /// The APIs and their versions.
        api_keys: Vec<ApiVersion> = all();
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What the broker can do.
        supported_features: Vec<SupportedFeatureKey> = tag(0);
        /// The epoch of the finalized features, −1 if unknown.
        finalized_features_epoch: i64 = tag(1) => -1;
        /// The feature levels that the whole cluster has agreed on; valid if the epoch is not negative.
        finalized_features: Vec<FinalizedFeatureKey> = tag(2);
        /// Whether a controller is ready to migrate from ZooKeeper (Kafka 3.x).
        zk_migration_ready: bool = tag(3);
    }
    /// An API and its versions.
    pub struct ApiVersion {
        /// The API's number.
        api_key: i16 = all();
        /// The first version.
        min_version: i16 = all();
        /// The last version.
        max_version: i16 = all();
    }
    /// A feature and its versions.
    pub struct SupportedFeatureKey {
        /// The feature.
        name: String = all();
        /// The first version.
        min_version: i16 = all();
        /// The last version.
        max_version: i16 = all();
    }
    /// A feature and the levels that the cluster has agreed on.
    pub struct FinalizedFeatureKey {
        /// The feature.
        name: String = all();
        /// The highest level.
        max_version_level: i16 = all();
        /// The lowest level.
        min_version_level: i16 = all();
    }
}
api! { ApiVersionsRequest => ApiVersionsResponse: ApiVersions, 0..=4, flexible 3; }
