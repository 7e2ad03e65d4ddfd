//! The table language: a message is a list of fields with the versions in which each exists.

/// When a field exists, when it may be null, and whether it is a tagged one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    since: i16,
    until: i16,
    null_since: i16,
    tag: Option<u32>,
}

/// A field of all versions.
pub(crate) const fn all() -> Field {
    since(0)
}

/// A field of version `version` and above.
pub(crate) const fn since(version: i16) -> Field {
    Field {
        since: version,
        until: i16::MAX,
        null_since: i16::MAX,
        tag: None,
    }
}

/// A tagged field (KIP-482): written only where the version is flexible and the value is not the default.
pub(crate) const fn tag(number: u32) -> Field {
    Field {
        tag: Some(number),
        ..since(0)
    }
}

impl Field {
    /// The first version that has it.
    pub(crate) const fn since(self, version: i16) -> Field {
        Field {
            since: version,
            ..self
        }
    }

    /// The last version that has it.
    pub(crate) const fn until(self, version: i16) -> Field {
        Field {
            until: version,
            ..self
        }
    }

    /// The first version in which it may be null.
    pub(crate) const fn nullable(self, version: i16) -> Field {
        Field {
            null_since: version,
            ..self
        }
    }

    pub(crate) const fn plain(self, version: i16) -> bool {
        self.tag.is_none() && self.since <= version && version <= self.until
    }

    pub(crate) const fn tagged(self, version: i16) -> Option<u32> {
        if self.since <= version && version <= self.until {
            self.tag
        } else {
            None
        }
    }

    pub(crate) const fn may_be_null(self, version: i16) -> bool {
        self.null_since <= version
    }
}

/// Declares structures of the protocol as tables: `field: Type = when;` or `field: Type = when => default;`.
///
/// `None` is written as empty where the version has no null. Unknown tagged fields are skipped.
macro_rules! message {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident {
            $( $(#[$field_doc:meta])* $field:ident: $type:ty = $when:expr $(=> $default:expr)? ; )*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: message!(@default $($default)?), )* }
            }
        }

        impl $crate::primitives::WireType for $name {
            #[allow(unused_mut, unused_variables, clippy::match_single_binding)]
            fn decode(
                from: &mut $crate::primitives::Decoder,
                context: $crate::primitives::Context,
            ) -> Result<Self, $crate::primitives::WireError> {
                use $crate::primitives::Context;
                use $crate::table::*;
                let mut read = Self::default();
                $(
                    if const { $when }.plain(context.version) {
                        let nullable = const { $when }.may_be_null(context.version);
                        read.$field = <$type as $crate::primitives::WireType>::decode(from, Context { nullable, ..context })?;
                    }
                )*
                if context.flexible {
                    for _ in 0..from.unsigned_varint()? {
                        let number = from.unsigned_varint()?;
                        let size = from.unsigned_varint()? as usize;
                        let mut value = $crate::primitives::Decoder::new(from.take(size)?);
                        $(
                            if const { $when }.tagged(context.version) == Some(number) {
                                let nullable = const { $when }.may_be_null(context.version);
                                read.$field = <$type as $crate::primitives::WireType>::decode(&mut value, Context { nullable, ..context })?;
                                continue;
                            }
                        )*
                    }
                }
                Ok(read)
            }

            #[allow(unused_mut, unused_variables)]
            fn encode(&self, to: &mut $crate::primitives::Encoder, context: $crate::primitives::Context) {
                use $crate::primitives::Context;
                use $crate::table::*;
                let mut tags: Vec<(u32, $crate::primitives::Encoder)> = Vec::new();
                let default = Self::default();
                $(
                    let nullable = const { $when }.may_be_null(context.version);
                    if const { $when }.plain(context.version) {
                        self.$field.encode(to, Context { nullable, ..context });
                    } else if let Some(number) = const { $when }.tagged(context.version)
                        && context.flexible
                        && self.$field != default.$field
                    {
                        let mut value = $crate::primitives::Encoder::new();
                        self.$field.encode(&mut value, Context { nullable, ..context });
                        tags.push((number, value));
                    }
                )*
                if context.flexible {
                    tags.sort_by_key(|(number, _)| *number);
                    to.unsigned_varint(tags.len() as u32);
                    for (number, value) in tags {
                        to.unsigned_varint(number);
                        to.unsigned_varint(value.len() as u32);
                        to.raw(&value.into_bytes());
                    }
                }
            }
        }

        #[cfg(test)]
        impl $crate::proofs::Sample for $name {
            #[allow(unused_mut, unused_variables)]
            fn sample(from: &mut $crate::proofs::Source, context: $crate::primitives::Context) -> Self {
                use $crate::primitives::Context;
                use $crate::table::*;
                let mut value = Self::default();
                $(
                    let when: Field = const { $when };
                    if when.plain(context.version) || context.flexible && when.tagged(context.version).is_some() {
                        let nullable = when.may_be_null(context.version);
                        value.$field = $crate::proofs::Sample::sample(from, Context { nullable, ..context });
                    }
                )*
                value
            }
        }
    )*};
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}

/// Ties a request to its API key, the versions known here, the first flexible one, and its response.
macro_rules! api {
    ($($request:ident => $response:ident: $key:ident, $low:literal..=$high:literal, flexible $flexible:literal;)*) => {$(
        impl $crate::api::ApiRequest for $request {
            const KEY: $crate::api::ApiKey = $crate::api::ApiKey::$key;
            const VERSIONS: (i16, i16) = ($low, $high);
            const FLEXIBLE: i16 = $flexible;
            type Response = $response;
        }
    )*};
}
