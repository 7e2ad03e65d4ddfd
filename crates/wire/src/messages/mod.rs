//! One file per API: its request, its response, in all versions known here.

macro_rules! files {
    ($($file:ident)*) => {$(
        mod $file;
        pub use $file::*;
    )*};
}

files! {
    alter_configs api_versions create_partitions create_topics delete_groups delete_records
    delete_topics describe_cluster describe_configs describe_groups fetch find_coordinator heartbeat
    incremental_alter_configs init_producer_id join_group leave_group list_groups list_offsets
    list_partition_reassignments metadata offset_commit offset_delete offset_fetch
    offset_for_leader_epoch produce sasl_authenticate sasl_handshake sync_group
}
