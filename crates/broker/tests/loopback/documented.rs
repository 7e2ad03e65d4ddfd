//! What PROTOCOL.md says is served, is served; and nothing else.

use crate::client::Client;
use kohort_broker::Broker;
use kohort_wire::ApiKey;
use kohort_wire::messages::ApiVersionsRequest;
use std::collections::BTreeMap;

/// The table's second column, by API; an API that is not served has a dash there.
fn documented() -> BTreeMap<&'static str, String> {
    let page = include_str!("../../../../PROTOCOL.md");
    let (_, table) = page.split_once("| API | served | sent |").unwrap();
    table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1], cells[2].to_owned())
        })
        .filter(|(_, served)| served != "–")
        .collect()
}

#[tokio::test]
async fn the_table_of_versions_is_true() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    let answer = client.ask(0, &ApiVersionsRequest::default()).await;
    let served: BTreeMap<&str, String> = answer
        .api_keys
        .iter()
        .map(|api| {
            let key = ApiKey::from_number(api.api_key).unwrap();
            let versions = format!("{}–{}", api.min_version, api.max_version);
            (key.name(), versions)
        })
        .collect();
    assert_eq!(served, documented());
}
