//! One file per API: its request, its response, in all versions known here.

macro_rules! files {
    ($($file:ident)*) => {$(
        mod $file;
        pub use $file::*;
    )*};
}

files! {
    delete_groups describe_groups find_coordinator heartbeat join_group leave_group list_groups
    offset_commit offset_delete offset_fetch sync_group api_versions
}
