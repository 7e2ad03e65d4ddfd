//! DeleteTopics (20), by name or, from v6 on, by id (KIP-516).

use crate::error_code::ErrorCode;
use crate::primitives::Uuid;

message! {
    /// Topics to remove.
    pub struct DeleteTopicsRequest {
        /// The topics, from v6 on.
        topics: Vec<DeleteTopicsRequestTopic> = since(6);
        /// The topics, up to v5.
        topic_names: Vec<String> = all().until(5);
        /// Milliseconds to wait until they are gone.
        timeout_ms: i32 = all();
    }
    /// A topic, by name or by id.
    pub struct DeleteTopicsRequestTopic {
        /// The topic's name; null removes by id.
        name: Option<String> = all().nullable(6);
        /// The topic's id; zero removes by name.
        topic_id: Uuid = all();
    }
    /// What became of them.
    pub struct DeleteTopicsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What became of each topic.
        responses: Vec<DeleteTopicsResponseTopic> = all();
    }
    /// What became of one topic.
    pub struct DeleteTopicsResponseTopic {
        /// Its name; null if an unknown id was given.
        name: Option<String> = all().nullable(6) => Some(String::new());
        /// Its id.
        topic_id: Uuid = since(6);
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = since(5).nullable(5);
    }
}
api! { DeleteTopicsRequest => DeleteTopicsResponse: DeleteTopics, 0..=6, flexible 4; }
