//! Types, operators and abbreviations of the mangling.

/// Form in which a literal of a type is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiteralForm {
    /// The type in parentheses and the value.
    Cast,
    /// The value and these letters.
    Suffix(&'static str),
    /// `true`, `false`.
    Bool,
    /// The type in parentheses and the bits in brackets.
    Float,
}

/// A type of the language.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) literal: LiteralForm,
}

macro_rules! builtins {
    ($(#[$doc:meta])* $function:ident: $($code:literal => $name:expr, $literal:expr;)*) => {
        $(#[$doc])*
        pub(crate) fn $function(code: u8) -> Option<&'static Builtin> {
            use LiteralForm::*;
            Some(match code {
                $($code => &Builtin { name: $name, literal: $literal },)*
                _ => return None,
            })
        }
    };
}

builtins! {
    /// The type that a letter stands for.
    builtin:
    b'a' => "signed char", Cast;
    b'b' => "bool", Bool;
    b'c' => "char", Cast;
    b'd' => "double", Float;
    b'e' => "long double", Float;
    b'f' => "float", Float;
    b'g' => "__float128", Float;
    b'h' => "unsigned char", Cast;
    b'i' => "int", Suffix("");
    b'j' => "unsigned int", Suffix("u");
    b'l' => "long", Suffix("l");
    b'm' => "unsigned long", Suffix("ul");
    b'n' => "__int128", Cast;
    b'o' => "unsigned __int128", Cast;
    b's' => "short", Cast;
    b't' => "unsigned short", Cast;
    b'v' => "void", Cast;
    b'w' => "wchar_t", Cast;
    b'x' => "long long", Suffix("ll");
    b'y' => "unsigned long long", Suffix("ull");
    b'z' => "...", Cast;
}

builtins! {
    /// The type that a letter behind `D` stands for.
    builtin_d:
    b'f' => "decimal32", Cast;
    b'd' => "decimal64", Cast;
    b'e' => "decimal128", Cast;
    b'h' => "half", Float;
    b'u' => "char8_t", Cast;
    b's' => "char16_t", Cast;
    b'i' => "char32_t", Cast;
    b'n' => NULLPTR, Cast;
}

/// The type of `nullptr`.
pub(crate) const NULLPTR: &str = "decltype(nullptr)";

/// The 16-bit type with the exponent of `float`.
pub(crate) static BFLOAT16: Builtin = Builtin {
    name: "std::bfloat16_t",
    literal: LiteralForm::Float,
};

/// An operator of the language.
#[derive(Debug)]
pub(crate) struct Operator {
    /// The two letters that stand for the operator in mangled names.
    pub(crate) code: [u8; 2],
    /// Text of the operator. A blank at its end separates it from its operand.
    pub(crate) name: &'static str,
    pub(crate) operands: u8,
}

const fn operator_row(code: &[u8; 2], name: &'static str, operands: u8) -> Operator {
    Operator {
        code: *code,
        name,
        operands,
    }
}

/// All operators, in the order of their codes.
static OPERATORS: &[Operator] = &[
    operator_row(b"aN", "&=", 2),
    operator_row(b"aS", "=", 2),
    operator_row(b"aa", "&&", 2),
    operator_row(b"ad", "&", 1),
    operator_row(b"an", "&", 2),
    operator_row(b"at", "alignof ", 1),
    operator_row(b"aw", "co_await ", 1),
    operator_row(b"az", "alignof ", 1),
    operator_row(b"cc", "const_cast", 2),
    operator_row(b"cl", "()", 2),
    operator_row(b"cm", ",", 2),
    operator_row(b"co", "~", 1),
    operator_row(b"dV", "/=", 2),
    operator_row(b"dX", "[...]=", 3),
    operator_row(b"da", "delete[] ", 1),
    operator_row(b"dc", "dynamic_cast", 2),
    operator_row(b"de", "*", 1),
    operator_row(b"di", "=", 2),
    operator_row(b"dl", "delete ", 1),
    operator_row(b"ds", ".*", 2),
    operator_row(b"dt", ".", 2),
    operator_row(b"dv", "/", 2),
    operator_row(b"dx", "]=", 2),
    operator_row(b"eO", "^=", 2),
    operator_row(b"eo", "^", 2),
    operator_row(b"eq", "==", 2),
    operator_row(b"fL", "...", 3),
    operator_row(b"fR", "...", 3),
    operator_row(b"fl", "...", 2),
    operator_row(b"fr", "...", 2),
    operator_row(b"ge", ">=", 2),
    operator_row(b"gs", "::", 1),
    operator_row(b"gt", ">", 2),
    operator_row(b"ix", "[]", 2),
    operator_row(b"lS", "<<=", 2),
    operator_row(b"le", "<=", 2),
    operator_row(b"li", "operator\"\" ", 1),
    operator_row(b"ls", "<<", 2),
    operator_row(b"lt", "<", 2),
    operator_row(b"mI", "-=", 2),
    operator_row(b"mL", "*=", 2),
    operator_row(b"mi", "-", 2),
    operator_row(b"ml", "*", 2),
    operator_row(b"mm", "--", 1),
    operator_row(b"na", "new[]", 3),
    operator_row(b"ne", "!=", 2),
    operator_row(b"ng", "-", 1),
    operator_row(b"nt", "!", 1),
    operator_row(b"nw", "new", 3),
    operator_row(b"oR", "|=", 2),
    operator_row(b"oo", "||", 2),
    operator_row(b"or", "|", 2),
    operator_row(b"pL", "+=", 2),
    operator_row(b"pl", "+", 2),
    operator_row(b"pm", "->*", 2),
    operator_row(b"pp", "++", 1),
    operator_row(b"ps", "+", 1),
    operator_row(b"pt", "->", 2),
    operator_row(b"qu", "?", 3),
    operator_row(b"rM", "%=", 2),
    operator_row(b"rS", ">>=", 2),
    operator_row(b"rc", "reinterpret_cast", 2),
    operator_row(b"rm", "%", 2),
    operator_row(b"rs", ">>", 2),
    operator_row(b"sP", "sizeof...", 1),
    operator_row(b"sZ", "sizeof...", 1),
    operator_row(b"sc", "static_cast", 2),
    operator_row(b"ss", "<=>", 2),
    operator_row(b"st", "sizeof ", 1),
    operator_row(b"sz", "sizeof ", 1),
    operator_row(b"tr", "throw", 0),
    operator_row(b"tw", "throw ", 1),
];

impl Operator {
    /// The operator with a code.
    pub(crate) fn find(code: [u8; 2]) -> Option<&'static Operator> {
        let at = OPERATORS
            .binary_search_by(|operator| operator.code.cmp(&code))
            .ok()?;
        Some(&OPERATORS[at])
    }

    /// Whether the operator is one of the casts `static_cast` and so on.
    pub(crate) fn is_named_cast(&self) -> bool {
        matches!(&self.code, b"cc" | b"dc" | b"rc" | b"sc")
    }

    /// Whether the operator is a fold over a pack.
    pub(crate) fn is_fold(&self) -> bool {
        self.code[0] == b'f'
    }
}

/// A name of the standard library with an abbreviation.
#[derive(Debug)]
pub(crate) struct Abbreviation {
    pub(crate) short: &'static str,
    /// Text of the whole type, which constructors and destructors need.
    pub(crate) long: &'static str,
    /// Name of the type's constructors and destructors; `None` for a namespace.
    pub(crate) last_name: Option<&'static str>,
}

/// The abbreviation with a letter behind `S`.
pub(crate) fn abbreviation(code: u8) -> Option<&'static Abbreviation> {
    Some(match code {
        b't' => &Abbreviation {
            short: "std",
            long: "std",
            last_name: None,
        },
        b'a' => &Abbreviation {
            short: "std::allocator",
            long: "std::allocator",
            last_name: Some("allocator"),
        },
        b'b' => &Abbreviation {
            short: "std::basic_string",
            long: "std::basic_string",
            last_name: Some("basic_string"),
        },
        b's' => &Abbreviation {
            short: "std::string",
            long: "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
            last_name: Some("basic_string"),
        },
        b'i' => &Abbreviation {
            short: "std::istream",
            long: "std::basic_istream<char, std::char_traits<char> >",
            last_name: Some("basic_istream"),
        },
        b'o' => &Abbreviation {
            short: "std::ostream",
            long: "std::basic_ostream<char, std::char_traits<char> >",
            last_name: Some("basic_ostream"),
        },
        b'd' => &Abbreviation {
            short: "std::iostream",
            long: "std::basic_iostream<char, std::char_traits<char> >",
            last_name: Some("basic_iostream"),
        },
        _ => return None,
    })
}
