//! Requests at fault, rule by rule: the clause, what is asked, what the answer must say.

pub(crate) const NOT_FOUND: &str = "one or more keys specified are not found on KME";
pub(crate) const UNKNOWN: &str = "bc490419-7d60-487f-adc1-4ddcc177c139";

/// One request that is at fault: what is asked, and what must stand in the message.
pub(crate) struct Case {
    pub(crate) rule: &'static str,
    pub(crate) path: &'static str,
    pub(crate) body: Option<&'static str>,
    pub(crate) says: &'static str,
}

const fn get(rule: &'static str, path: &'static str, says: &'static str) -> Case {
    Case {
        rule,
        path,
        body: None,
        says,
    }
}

const fn post(
    rule: &'static str,
    path: &'static str,
    body: &'static str,
    says: &'static str,
) -> Case {
    Case {
        rule,
        path,
        body: Some(body),
        says,
    }
}

pub(crate) const STATUS: &str = "/api/v1/keys/nobody/status";
pub(crate) const ENC: &str = "/api/v1/keys/node-b/enc_keys";
pub(crate) const DEC: &str = "/api/v1/keys/node-b/dec_keys";

/// All of these are 400 with an Error body (clause 6.5). Asked by node-a at its own KME.
pub(crate) const FAULTS: &[Case] = &[
    get(
        "5.1 the slave is not known",
        STATUS,
        "not known to this KME",
    ),
    get(
        "5.1 the slave is the master",
        "/api/v1/keys/node-a/status",
        "with itself",
    ),
    get(
        "5.1 the slave is at the same KME",
        "/api/v1/keys/node-a2/status",
        "serves both",
    ),
    get(
        "5.1 no UTF-8 in the path",
        "/api/v1/keys/%FF/status",
        "path",
    ),
    get(
        "5.1 a control character in the path",
        "/api/v1/keys/%00/status",
        "SAE ID",
    ),
    get(
        "5.2 the slave is not known",
        "/api/v1/keys/nobody/enc_keys",
        "not known to this KME",
    ),
    get(
        "5.2 number is 0",
        "/api/v1/keys/node-b/enc_keys?number=0",
        "1 to 32",
    ),
    get(
        "5.2 number is too large",
        "/api/v1/keys/node-b/enc_keys?number=33",
        "1 to 32",
    ),
    get(
        "5.2 number is negative",
        "/api/v1/keys/node-b/enc_keys?number=-1",
        "not a number",
    ),
    get(
        "5.2 number is no integer",
        "/api/v1/keys/node-b/enc_keys?number=1.5",
        "not a number",
    ),
    get(
        "5.2 number is empty",
        "/api/v1/keys/node-b/enc_keys?number=",
        "not a number",
    ),
    get(
        "5.2 number has a sign",
        "/api/v1/keys/node-b/enc_keys?number=%2B1",
        "not a number",
    ),
    get(
        "5.2 number is beyond 32 bits",
        "/api/v1/keys/node-b/enc_keys?number=4294967296",
        "not a number",
    ),
    get(
        "5.2 number is given twice",
        "/api/v1/keys/node-b/enc_keys?number=1&number=2",
        "given twice",
    ),
    get(
        "5.2 GET takes number and size only",
        "/api/v1/keys/node-b/enc_keys?extension_mandatory=1",
        "number, size",
    ),
    get(
        "5.2 size is no multiple of 8",
        "/api/v1/keys/node-b/enc_keys?size=255",
        "size shall be a multiple of 8",
    ),
    get(
        "5.2 size is below min_key_size",
        "/api/v1/keys/node-b/enc_keys?size=56",
        "64 to 1024",
    ),
    get(
        "5.2 size is beyond max_key_size",
        "/api/v1/keys/node-b/enc_keys?size=1032",
        "64 to 1024",
    ),
    get(
        "5.2 size is 0",
        "/api/v1/keys/node-b/enc_keys?size=0",
        "64 to 1024",
    ),
    post("6.2 number is 0", ENC, r#"{"number":0}"#, "1 to 32"),
    post(
        "6.2 number is a text",
        ENC,
        r#"{"number":"1"}"#,
        "key request",
    ),
    post(
        "6.2 number is no integer",
        ENC,
        r#"{"number":1.5}"#,
        "key request",
    ),
    post(
        "6.2 size is no multiple of 8",
        ENC,
        r#"{"size":129}"#,
        "size shall be a multiple of 8",
    ),
    post(
        "6.2 size is too large",
        ENC,
        r#"{"size":2048}"#,
        "64 to 1024",
    ),
    post("6.2 the body is no JSON", ENC, "number=1", "key request"),
    post("6.2 the body is empty", ENC, "", "key request"),
    post("6.2 the body is cut", ENC, r#"{"number":1"#, "key request"),
    post("6.2 the body is an array", ENC, "[1,256]", "key request"),
    post("6.2 the body is no UTF-8 text", ENC, "\u{0}", "key request"),
    post(
        "6.2 a member is given twice",
        ENC,
        r#"{"number":1,"number":2}"#,
        "key request",
    ),
    post(
        "6.2 too many additional SAEs",
        ENC,
        r#"{"additional_slave_SAE_IDs":["a","b","c"]}"#,
        "at most 2",
    ),
    post(
        "6.2 an additional SAE is not known",
        ENC,
        r#"{"additional_slave_SAE_IDs":["x"]}"#,
        "SAE x is not known",
    ),
    post(
        "6.2 an additional SAE is the master",
        ENC,
        r#"{"additional_slave_SAE_IDs":["node-a"]}"#,
        "with itself",
    ),
    post(
        "6.2 an additional SAE is named twice",
        ENC,
        r#"{"additional_slave_SAE_IDs":["node-b"]}"#,
        "named twice",
    ),
    post(
        "6.2 an additional SAE is no text",
        ENC,
        r#"{"additional_slave_SAE_IDs":[1]}"#,
        "key request",
    ),
    post(
        "6.2 a mandatory extension",
        ENC,
        r#"{"extension_mandatory":[{"vendor_route":"direct"}]}"#,
        "not all extension_mandatory parameters are supported",
    ),
    post(
        "6.2 one mandatory extension among others",
        ENC,
        r#"{"extension_mandatory":[{},{"vendor_age":5}],"extension_optional":[{"vendor_x":1}]}"#,
        "not all extension_mandatory parameters are supported",
    ),
    post(
        "6.2 an extension is no object",
        ENC,
        r#"{"extension_mandatory":["vendor_age"]}"#,
        "key request",
    ),
    get("5.3 no key_ID", DEC, "key_ID is missing"),
    get(
        "5.3 key_ID is no UUID",
        "/api/v1/keys/node-b/dec_keys?key_ID=1234",
        "UUID",
    ),
    get(
        "5.3 two key_IDs with GET",
        "/api/v1/keys/node-b/dec_keys?key_ID=1&key_ID=2",
        "given twice",
    ),
    get(
        "5.3 another name",
        "/api/v1/keys/node-b/dec_keys?key_id=1",
        "key_ID",
    ),
    get(
        "5.3 an unknown key",
        "/api/v1/keys/node-b/dec_keys?key_ID=bc490419-7d60-487f-adc1-4ddcc177c139",
        NOT_FOUND,
    ),
    post(
        "6.4 an unknown key",
        DEC,
        r#"{"key_IDs":[{"key_ID":"bc490419-7d60-487f-adc1-4ddcc177c139"}]}"#,
        NOT_FOUND,
    ),
    post("6.4 no key IDs", DEC, r#"{"key_IDs":[]}"#, "empty"),
    post("6.4 the member is missing", DEC, "{}", "key_IDs"),
    post(
        "6.4 a bare text is no entry",
        DEC,
        r#"{"key_IDs":["bc490419-7d60-487f-adc1-4ddcc177c139"]}"#,
        "list of key IDs",
    ),
    post(
        "6.4 a key ID is no UUID",
        DEC,
        r#"{"key_IDs":[{"key_ID":"12"}]}"#,
        "UUID",
    ),
];
