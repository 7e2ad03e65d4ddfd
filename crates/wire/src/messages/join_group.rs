//! JoinGroup (11): enters a group, or takes part in its next round. KIP-394 (v4), KIP-345 (v5), KIP-559 (v7), KIP-800 (v8), KIP-814 (v9).

use crate::error_code::ErrorCode;
use bytes::Bytes;

message! {
    /// Asks to take part in the group's next generation.
    pub struct JoinGroupRequest {
        /// The group.
        group_id: String = all();
        /// Milliseconds without a sign of life after which the member is removed (`session.timeout.ms`).
        session_timeout_ms: i32 = all();
        /// Milliseconds that a rebalance waits for the member (`max.poll.interval.ms`); −1 in v0, which means the session timeout.
        rebalance_timeout_ms: i32 = since(1) => -1;
        /// The member's id, empty at first.
        member_id: String = all();
        /// The static member's own id (`group.instance.id`, KIP-345).
        group_instance_id: Option<String> = since(5).nullable(5);
        /// The kind of group: `consumer`, `connect`, …
        protocol_type: String = all();
        /// The assignors that the member knows, the best first.
        protocols: Vec<JoinGroupProtocol> = all();
        /// Why it joins, in words (KIP-800).
        reason: Option<String> = since(8).nullable(8);
        /// Why it joins, as a number that a coordinator may decide by (KIP-423); 0 is unknown, −1 (not written) is none given. Brokers
        /// that do not know the tag skip it.
        join_reason: i8 = tag(423) => -1;
    }
    /// An assignor and what the member tells its leader.
    pub struct JoinGroupProtocol {
        /// The assignor's name.
        name: String = all();
        /// What only members read; a subscription in `consumer` groups.
        metadata: Bytes = all();
    }
    /// The round that the member takes part in.
    pub struct JoinGroupResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(2);
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The generation, −1 on error.
        generation_id: i32 = all() => -1;
        /// The group's kind.
        protocol_type: Option<String> = since(7).nullable(7);
        /// The assignor that the group chose. Before v7 null is written as empty.
        protocol_name: Option<String> = all().nullable(7);
        /// The leader's member id.
        leader: String = all();
        /// Whether the leader is not to assign (KIP-814).
        skip_assignment: bool = since(9);
        /// The member's id.
        member_id: String = all();
        /// All members, for the leader only.
        members: Vec<JoinGroupResponseMember> = all();
    }
    /// A member as the leader sees it.
    pub struct JoinGroupResponseMember {
        /// The member's id.
        member_id: String = all();
        /// Its `group.instance.id`.
        group_instance_id: Option<String> = since(5).nullable(5);
        /// What it told the leader.
        metadata: Bytes = all();
    }
}
api! { JoinGroupRequest => JoinGroupResponse: JoinGroup, 0..=9, flexible 6; }
