//! DescribeConfigs (32): settings of topics, brokers and groups. Synonyms (v1, KIP-226), types and documentation (v3, KIP-569).

use crate::error_code::ErrorCode;

message! {
    /// Which settings.
    pub struct DescribeConfigsRequest {
        /// Of what.
        resources: Vec<DescribeConfigsRequestResource> = all();
        /// Whether to name the settings that each value may come from.
        include_synonyms: bool = since(1);
        /// Whether to explain them.
        include_documentation: bool = since(3);
    }
    /// Something that has settings.
    pub struct DescribeConfigsRequestResource {
        /// 2 a topic, 4 a broker, 8 a broker's loggers, 16 client metrics, 32 a group.
        resource_type: i8 = all();
        /// Its name; of a broker the id, empty for the default of all brokers.
        resource_name: String = all();
        /// Which settings; null asks for all.
        configuration_keys: Option<Vec<String>> = all().nullable(0) => Some(Vec::new());
    }
    /// The settings.
    pub struct DescribeConfigsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// One entry for each resource.
        results: Vec<DescribeConfigsResponseResult> = all();
    }
    /// A resource's settings.
    pub struct DescribeConfigsResponseResult {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = all().nullable(0);
        /// The resource's type, as in the request.
        resource_type: i8 = all();
        /// Its name.
        resource_name: String = all();
        /// Its settings.
        configs: Vec<DescribeConfigsResponseConfig> = all();
    }
    /// A setting.
    pub struct DescribeConfigsResponseConfig {
        /// Its name.
        name: String = all();
        /// Its value; null if it is secret or not set.
        value: Option<String> = all().nullable(0);
        /// Whether it cannot be changed while the broker runs.
        read_only: bool = all();
        /// Whether it is the default, v0 only.
        is_default: bool = all().until(0);
        /// Where the value comes from: 1 the topic, 2 the broker, 3 all brokers, 4 the broker's file, 5 Kafka's default, 6 a logger,
        /// 7 client metrics, 8 the group; −1 unknown.
        config_source: i8 = since(1) => -1;
        /// Whether the value is secret.
        is_sensitive: bool = all();
        /// The settings that the value may come from, the strongest first.
        synonyms: Vec<DescribeConfigsResponseSynonym> = since(1);
        /// Its type: 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0 unknown.
        config_type: i8 = since(3);
        /// What it does, in words.
        documentation: Option<String> = since(3).nullable(3);
    }
    /// A setting that a value may come from.
    pub struct DescribeConfigsResponseSynonym {
        /// Its name.
        name: String = all();
        /// Its value.
        value: Option<String> = all().nullable(0);
        /// Its source, as in `config_source`.
        source: i8 = all();
    }
}
api! { DescribeConfigsRequest => DescribeConfigsResponse: DescribeConfigs, 0..=4, flexible 4; }
