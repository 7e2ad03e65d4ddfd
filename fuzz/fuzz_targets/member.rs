#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| kohort_hostile::run("member", data));
