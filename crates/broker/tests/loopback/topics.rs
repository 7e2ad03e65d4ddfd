//! Topics and what is told about them.

use crate::client::{Client, NOBODY, batch};
use kohort_broker::{Broker, Settings};
use kohort_wire::ErrorCode;
use kohort_wire::messages::*;

fn metadata(names: &[&str], allow_auto_topic_creation: bool) -> MetadataRequest {
    let topic = |name: &&str| MetadataRequestTopic {
        name: Some((*name).into()),
        ..Default::default()
    };
    MetadataRequest {
        topics: Some(names.iter().map(topic).collect()),
        allow_auto_topic_creation,
        ..Default::default()
    }
}

#[tokio::test]
async fn a_topic_lives_and_dies() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    assert_eq!(client.create("t", 3).await.num_partitions, 3);
    assert_eq!(
        client.create("t", 3).await.error_code,
        ErrorCode::TopicAlreadyExists
    );
    assert_eq!(
        client.create("a/b", 3).await.error_code,
        ErrorCode::InvalidTopicException
    );
    assert_eq!(
        client.create("u", 0).await.error_code,
        ErrorCode::InvalidPartitions
    );
    let widen = |count| CreatePartitionsRequest {
        topics: vec![CreatePartitionsRequestTopic {
            name: "t".into(),
            count,
            assignments: None,
        }],
        ..Default::default()
    };
    assert_eq!(
        client.ask(3, &widen(5)).await.results[0].error_code,
        ErrorCode::None
    );
    assert_eq!(
        client.ask(3, &widen(5)).await.results[0].error_code,
        ErrorCode::InvalidPartitions
    );
    let told = client.ask(12, &metadata(&["t"], false)).await;
    assert_eq!(
        (told.topics[0].partitions.len(), told.brokers[0].port),
        (5, i32::from(broker.address().port()))
    );
    let topic = DeleteTopicsRequestTopic {
        name: Some("t".into()),
        ..Default::default()
    };
    let delete = DeleteTopicsRequest {
        topics: vec![topic],
        ..Default::default()
    };
    assert_eq!(
        client.ask(6, &delete).await.responses[0].error_code,
        ErrorCode::None
    );
    let again = client.ask(6, &delete).await;
    assert_eq!(
        again.responses[0].error_code,
        ErrorCode::UnknownTopicOrPartition
    );
    let told = client.ask(12, &metadata(&["t"], false)).await;
    assert_eq!(
        told.topics[0].error_code,
        ErrorCode::UnknownTopicOrPartition
    );
}

#[tokio::test]
async fn topics_are_made_on_demand_unless_told_not_to() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    let told = client.ask(12, &metadata(&["new", "a/b"], true)).await;
    assert_eq!(
        (told.topics[0].error_code, told.topics[0].partitions.len()),
        (ErrorCode::None, 1)
    );
    assert_eq!(told.topics[1].error_code, ErrorCode::InvalidTopicException);
    let mut settings = Settings::for_tests();
    settings.set("auto.create.topics.enable", "false").unwrap();
    let broker = Broker::builder().settings(settings).start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    let told = client.ask(12, &metadata(&["new"], true)).await;
    assert_eq!(
        told.topics[0].error_code,
        ErrorCode::UnknownTopicOrPartition
    );
}

#[tokio::test]
async fn settings_of_a_topic_are_described_and_changed() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let change = |value: &str| IncrementalAlterConfigsRequest {
        resources: vec![IncrementalAlterConfigsRequestResource {
            resource_type: 2,
            resource_name: "t".into(),
            configs: vec![IncrementalAlterConfigsRequestConfig {
                name: "max.message.bytes".into(),
                config_operation: 0,
                value: Some(value.into()),
            }],
        }],
        ..Default::default()
    };
    assert_eq!(
        client.ask(1, &change("x")).await.responses[0].error_code,
        ErrorCode::InvalidConfig
    );
    assert_eq!(
        client.ask(1, &change("100")).await.responses[0].error_code,
        ErrorCode::None
    );
    let resource = DescribeConfigsRequestResource {
        resource_type: 2,
        resource_name: "t".into(),
        configuration_keys: Some(vec!["max.message.bytes".into()]),
    };
    let describe = DescribeConfigsRequest {
        resources: vec![resource],
        ..Default::default()
    };
    let told = client.ask(4, &describe).await;
    assert_eq!(told.results[0].configs[0].value.as_deref(), Some("100"));
    let refused = client.produce("t", 0, batch(1, 0, NOBODY, &[0; 60])).await;
    assert_eq!(refused.error_code, ErrorCode::MessageTooLarge);
}

#[tokio::test]
async fn old_records_are_deleted_on_request() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    client.produce("t", 0, batch(5, 0, NOBODY, b"x")).await;
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsRequestTopic {
            name: "t".into(),
            partitions: vec![DeleteRecordsRequestPartition {
                partition_index: 0,
                offset: 3,
            }],
        }],
        ..Default::default()
    };
    let response = client.ask(2, &request).await;
    assert_eq!(response.topics[0].partitions[0].low_watermark, 3);
    assert_eq!(client.list_offset("t", -2).await.offset, 3);
    assert_eq!(
        client.fetch("t", 2).await.error_code,
        ErrorCode::OffsetOutOfRange
    );
}

#[tokio::test]
async fn versions_are_told_even_to_a_client_from_the_future() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    let request = ApiVersionsRequest {
        client_software_name: "test".into(),
        client_software_version: "1.0".into(),
    };
    let told = client.ask(4, &request).await;
    assert_eq!(told.error_code, ErrorCode::None);
    assert!(
        told.api_keys
            .iter()
            .any(|api| api.api_key == 11 && api.max_version == 9)
    );
    // librdkafka does not compress for a broker that does not name Produce v0.
    let produce = told.api_keys.iter().find(|api| api.api_key == 0);
    assert_eq!(produce.map(|api| api.min_version), Some(0));
    // Version 9 of ApiVersions does not exist yet: key 18, version 9, correlation id 5, no client id.
    let frame = [0, 0, 0, 11, 0, 18, 0, 9, 0, 0, 0, 5, 0xff, 0xff, 0];
    tokio::io::AsyncWriteExt::write_all(&mut client.stream, &frame)
        .await
        .unwrap();
    let frame = client.frame().await.unwrap();
    let (id, answer) = kohort_wire::frame::read_response::<ApiVersionsRequest>(frame, 0).unwrap();
    assert_eq!((id, answer.error_code), (5, ErrorCode::UnsupportedVersion));
    let told: Vec<i16> = answer.api_keys.iter().map(|api| api.api_key).collect();
    assert_eq!(told, [18]);
}
