//! Documents of the standard, of other makers, and broken ones.

use proptest::prelude::*;
use zeroize::Zeroizing;

use super::*;
use crate::{Key, NamedKey};

fn container(text: &str) -> Result<Vec<NamedKey>, DocumentError> {
    parse_container(Zeroizing::new(text.as_bytes().to_vec()))
}

fn names_of(result: Result<Vec<NamedKey>, DocumentError>) -> Result<Vec<String>, DocumentError> {
    result.map(|keys| keys.iter().map(|named| named.id.to_string()).collect())
}

const ID: &str = "bc490419-7d60-487f-adc1-4ddcc177c139";

#[test]
fn a_container_of_another_maker_is_read() {
    // Escaped solidus, no padding, unknown members, extensions: all seen in the field.
    let text = format!(
        r#"{{"keys":[{{"key_ID":"{ID}","key_ID_extension":{{"a\\/":1}},"key":"\/\/8BAgMEBQY","hops":2}}],
            "key_container_extension":{{}}}}"#
    );
    let keys = container(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].id.to_string(), ID);
    assert_eq!(keys[0].key.as_slice(), [0xff, 0xff, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_broken_container_is_refused_without_quoting_it() {
    let secret = "c2VjcmV0c2VjcmV0c2VjcmV0";
    for text in [
        format!(r#"{{"keys":"{secret}"}}"#),
        format!(r#"{{"keys":[{{"key_ID":"{secret}","key":"{secret}"}}]}}"#),
        format!(r#"{{"keys":[{{"key_ID":"{ID}","key":"{secret}!"}}]}}"#),
        format!(r#"{{"keys":[{{"key_ID":"{ID}","key":"{secret}","key":"{secret}"}}]}}"#),
        format!(r#"{{"keys":[{{"key_ID":"{ID}","key":"AAAA"}}]}}"#),
        format!(
            r#"{{"keys":[{{"key_ID":"{ID}","key":"{}"}}]}}"#,
            "A".repeat(176)
        ),
        format!(r#"{{"keys":[{{"key":"{secret}"}}]}}"#),
        format!("<html>{secret}</html>"),
        String::new(),
        "{".repeat(1000),
    ] {
        let error = names_of(container(&text)).expect_err(&text).to_string();
        assert!(
            !error.contains(secret) && !error.contains("AAAA"),
            "{error}"
        );
    }
}

#[test]
fn too_many_and_too_long_are_refused() {
    let one = format!(r#"{{"key_ID":"{ID}","key":"AAAAAAAAAAAA"}}"#);
    let text = format!(r#"{{"keys":[{}]}}"#, vec![one; 1025].join(","));
    assert!(matches!(
        names_of(container(&text)),
        Err(DocumentError::TooMany {
            given: 1025,
            allowed: 1024,
            ..
        })
    ));
    let long = " ".repeat(crate::limits::DOCUMENT_OCTETS_MAX + 1);
    assert!(matches!(
        names_of(container(&long)),
        Err(DocumentError::TooLong { .. })
    ));
    assert!(matches!(
        parse_key_ids(long.as_bytes()),
        Err(DocumentError::TooLong { .. })
    ));
}

#[test]
fn a_key_request_takes_the_members_of_table_6_2() {
    let text = br#"{"number":3,"size":1024,"additional_slave_SAE_IDs":["x"],
        "extension_mandatory":[{"abc_route_type":"direct"}],"extension_optional":[{"b":1}]}"#;
    let request = parse_key_request(text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((request.number, request.size), (Some(3), Some(1024)));
    assert_eq!(request.additional_slave_sae_ids[0].as_str(), "x");
    assert_eq!(request.extension_mandatory.len(), 1);
    assert_eq!(parse_key_request(b"{}"), Ok(KeyRequest::default()));
    for wrong in [
        &b"[]"[..],
        br#"{"number":-1}"#,
        br#"{"size":"256"}"#,
        br#"{"number":1.5}"#,
    ] {
        assert!(parse_key_request(wrong).is_err());
    }
}

#[test]
fn names_are_written_and_read_in_the_form_of_6_4() {
    let ids = KeyIds::of([KeyId([1; 16])]);
    let text = serde_json::to_string(&ids).unwrap_or_default();
    assert_eq!(
        text,
        r#"{"key_IDs":[{"key_ID":"01010101-0101-0101-0101-010101010101"}]}"#
    );
    assert_eq!(parse_key_ids(text.as_bytes()), Ok(ids));
    assert!(parse_key_ids(br#"{"key_IDs":[{"key_ID":"7"}]}"#).is_err());
}

#[test]
fn status_and_error_keep_the_names_of_the_standard() {
    let text = r#"{"source_KME_ID":"AAAABBBBCCCCDDDD","target_KME_ID":"EEEEFFFFGGGGHHHH",
        "master_SAE_ID":"IIIIJJJJKKKKLLLL","slave_SAE_ID":"MMMMNNNNOOOOPPPP","key_size":352,
        "stored_key_count":25000,"max_key_count":100000,"max_key_per_request":128,
        "max_key_size":1024,"min_key_size":64,"max_SAE_ID_count":0}"#;
    let status = parse_status(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((status.key_size, status.max_key_per_request), (352, 128));
    let error = parse_error(br#"{"message":"no","details":[{"a":"b"}]}"#);
    assert_eq!(error.map(|error| error.to_string()), Ok("no".to_owned()));
    assert!(parse_error(b"<html>").is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(keys in prop::collection::vec(
        (any::<[u8; 16]>(), prop::collection::vec(any::<u8>(), 8..=128)), 0..20)) {
        let keys: Vec<NamedKey> = keys.iter().filter_map(|(id, octets)| {
            Some(NamedKey { id: KeyId(*id), key: Key::from_slice(octets).ok()? })
        }).collect();
        let body = write_container(keys.iter().map(|named| (&named.id, &named.key)));
        let read = parse_container(body);
        prop_assert!(read.as_ref().is_ok_and(|read| read.len() == keys.len()
            && read.iter().zip(&keys).all(|(a, b)| a.id == b.id && a.key.same_as(&b.key))));
    }

    #[test]
    fn any_octets_are_read_without_panic(octets: Vec<u8>) {
        let _ = parse_key_request(&octets);
        let _ = parse_key_ids(&octets);
        let _ = parse_status(&octets);
        let _ = parse_error(&octets);
        let _ = parse_container(Zeroizing::new(octets));
    }
}
