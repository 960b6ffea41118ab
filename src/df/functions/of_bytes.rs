//! `substr` and `strpos` of bytes. Of texts they are DataFusion's.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::types::{logical_binary, logical_int64};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    Coercion, ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TypeSignature, TypeSignatureClass, Volatility,
};
use memchr::memmem;

use super::row_function::{FunctionBuffers, row_function};
use crate::error::{Error, Result, sqlstate};
use crate::value::{ColumnType, ValueRef};

/// A function of texts that takes bytes as well.
#[derive(Debug)]
pub struct OfBytes {
    of_texts: Arc<ScalarUDF>,
    of_bytes: ScalarUDF,
    signature: Signature,
}

impl OfBytes {
    /// `substr(bytes, from [, count])`, beside that of texts.
    pub fn substr(of_texts: Arc<ScalarUDF>) -> OfBytes {
        let (bytes, number) =
            (exactly_bytes(), Coercion::new_exact(TypeSignatureClass::Native(logical_int64())));
        let taken = [vec![bytes.clone(), number.clone()], vec![bytes, number.clone(), number]];
        OfBytes::new(of_texts, row_function("substr", substr, ColumnType::Varbinary), taken)
    }

    /// `strpos(bytes, part)`, beside that of texts.
    pub fn strpos(of_texts: Arc<ScalarUDF>) -> OfBytes {
        let taken = [vec![exactly_bytes(), exactly_bytes()]];
        OfBytes::new(of_texts, row_function("strpos", strpos, ColumnType::Integer), taken)
    }

    fn new<const N: usize>(
        of_texts: Arc<ScalarUDF>,
        of_bytes: ScalarUDF,
        taken: [Vec<Coercion>; N],
    ) -> OfBytes {
        let texts = of_texts.signature().type_signature.clone();
        let bytes = taken.map(TypeSignature::Coercible);
        let all = [texts].into_iter().chain(bytes).collect();
        OfBytes { of_texts, of_bytes, signature: Signature::one_of(all, Volatility::Immutable) }
    }

    fn of(&self, first: Option<&FieldRef>) -> &ScalarUDF {
        match first.map(|field| field.data_type()) {
            Some(DataType::Binary) => &self.of_bytes,
            _ => &self.of_texts,
        }
    }
}

fn exactly_bytes() -> Coercion {
    Coercion::new_exact(TypeSignatureClass::Native(logical_binary()))
}

impl PartialEq for OfBytes {
    fn eq(&self, other: &Self) -> bool {
        self.of_texts == other.of_texts
    }
}

impl Eq for OfBytes {}

impl Hash for OfBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of_texts.hash(state);
    }
}

impl ScalarUDFImpl for OfBytes {
    fn name(&self) -> &str {
        self.of_texts.name()
    }

    fn aliases(&self) -> &[String] {
        self.of_texts.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        match types.first() {
            Some(DataType::Binary) => self.of_bytes.return_type(types),
            _ => self.of_texts.return_type(types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        self.of(args.arg_fields.first()).return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        self.of(args.arg_fields.first()).invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.of_texts.documentation()
    }
}

/// Bytes from a place on, the first being 1; of places before it nothing is taken, as of texts.
fn substr<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let (bytes, from, count) = match args {
        args if args.iter().any(|arg| arg.is_null()) => return Ok(ValueRef::Null),
        [ValueRef::Bytes(bytes), ValueRef::Int(from)] => (*bytes, *from, i64::MAX),
        [ValueRef::Bytes(bytes), ValueRef::Int(from), ValueRef::Int(count)] => (*bytes, *from, *count),
        _ => {
            return Err(Error::invalid("substr takes bytes and where to begin")
                .hint("substr(rowkey, from [, count])")
                .state(sqlstate::UNDEFINED_FUNCTION));
        }
    };
    if count < 0 {
        return Err(Error::invalid(format!("substr takes a count of bytes, not {count}"))
            .hint("substr(rowkey, from, 3)")
            .state(sqlstate::SUBSTRING));
    }
    let place = |n: i64| usize::try_from(n).unwrap_or(0).min(bytes.len());
    let (start, end) = (from.saturating_sub(1), from.saturating_sub(1).saturating_add(count));
    Ok(ValueRef::Bytes(&bytes[place(start)..place(end)]))
}

/// Where bytes begin in others, the first place being 1; 0 if they are not there.
fn strpos<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    Ok(match args {
        [ValueRef::Bytes(bytes), ValueRef::Bytes(part)] => {
            ValueRef::Int(memmem::find(bytes, part).map_or(0, |at| at as i64 + 1))
        }
        _ => ValueRef::Null,
    })
}
