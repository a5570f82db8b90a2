//! tessera for Rust, in one file over the C ABI (include/tessera.h) and without crates: an engine, its scheduler, and streams of requests.
//!
//! ```ignore
//! let engine = Engine::load("model.gguf", "")?;
//! let mut scheduler = Scheduler::new(&engine, "")?;
//! scheduler.start()?;
//! for piece in scheduler.submit("Once upon a time", r#"{"max_tokens": 40}"#)? {
//!     print!("{}", piece?.text);
//! }
//! ```
//! Options are JSON texts, and an empty text gives the defaults: docs/reference/c-options.md lists the keys.
use std::ffi::{c_char, c_int, c_void, CStr};
use std::{fmt, ptr, slice, sync::Arc, time::Duration};

/// Declarations of tessera.h, as far as this file needs them.
mod c {
    use super::{c_char, c_int, c_void};
    macro_rules! handles { ($($name:ident)*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* } }
    handles! { Error Text Tokens Engine Scheduler Request Piece }

    #[repr(C)]
    pub struct EngineOptions {
        pub size: usize,
        pub json: *const c_char,
        pub json_size: usize,
        pub stop: *const c_void,
        pub user: *mut c_void,
        pub drop: Option<extern "C" fn(*mut c_void)>,
        pub progress: Option<extern "C" fn(*mut c_void, u64, u64) -> i32>,
        pub log: Option<extern "C" fn(*mut c_void, i32, *const c_char, usize)>,
        pub parallel_for: Option<extern "C" fn(*mut c_void, usize, extern "C" fn(*mut c_void, usize), *mut c_void)>,
        pub concurrency: u64,
        pub cuda_stream: *mut c_void,
    }
    #[repr(C)]
    pub struct SchedulerOptions {
        pub size: usize,
        pub json: *const c_char,
        pub json_size: usize,
        pub user: *mut c_void,
        pub drop: Option<extern "C" fn(*mut c_void)>,
        pub clock: Option<extern "C" fn(*mut c_void) -> f64>,
        pub on_event: Option<extern "C" fn(*mut c_void, i32, u64, f64)>,
    }
    #[repr(C)]
    pub struct SubmitOptions {
        pub size: usize,
        pub json: *const c_char,
        pub json_size: usize,
        pub sampler: *const c_void,
        pub stop: *const c_void,
        pub user: *mut c_void,
        pub drop: Option<extern "C" fn(*mut c_void)>,
        pub on_ready: Option<extern "C" fn(*mut c_void)>,
    }
    pub const ABI_VERSION: i32 = 0;
    pub const API_VERSION: i32 = 1;
    pub const BOS_AS_MODEL: i32 = 0;
    pub const BOS_NEVER: i32 = 2;
    pub const REQUEST_ENDED: i32 = 3;
    pub const WAIT_FOREVER: i64 = i64::MAX;

    #[link(name = "tessera-c")]
    extern "C" {
        pub fn tessera_check_version(abi: i32, api: i32, error: *mut *mut Error) -> i32;
        pub fn tessera_error_code(error: *const Error) -> i32;
        pub fn tessera_error_text(error: *const Error) -> *const c_char;
        pub fn tessera_error_free(error: *mut Error);
        pub fn tessera_text_data(text: *const Text) -> *const c_char;
        pub fn tessera_text_size(text: *const Text) -> usize;
        pub fn tessera_text_free(text: *mut Text);
        pub fn tessera_tokens_data(tokens: *const Tokens) -> *const i32;
        pub fn tessera_tokens_count(tokens: *const Tokens) -> usize;
        pub fn tessera_tokens_free(tokens: *mut Tokens);
        pub fn tessera_engine_load(
            path: *const c_char,
            size: usize,
            options: *const EngineOptions,
            engine: *mut *mut Engine,
            error: *mut *mut Error,
        ) -> i32;
        pub fn tessera_engine_free(engine: *mut Engine);
        pub fn tessera_encode(
            engine: *const Engine,
            text: *const c_char,
            size: usize,
            bos: i32,
            special: i32,
            tokens: *mut *mut Tokens,
            error: *mut *mut Error,
        ) -> i32;
        pub fn tessera_decode(
            engine: *const Engine,
            tokens: *const i32,
            count: usize,
            control: i32,
            start: i32,
            text: *mut *mut Text,
            error: *mut *mut Error,
        ) -> i32;
        pub fn tessera_scheduler_create(
            engine: *const Engine,
            options: *const SchedulerOptions,
            scheduler: *mut *mut Scheduler,
            error: *mut *mut Error,
        ) -> i32;
        pub fn tessera_scheduler_start(scheduler: *mut Scheduler, error: *mut *mut Error) -> i32;
        pub fn tessera_scheduler_submit(
            scheduler: *mut Scheduler,
            tokens: *const i32,
            count: usize,
            session: *mut c_void,
            options: *const SubmitOptions,
            request: *mut *mut Request,
            error: *mut *mut Error,
        ) -> i32;
        pub fn tessera_scheduler_cancel(scheduler: *mut Scheduler, id: u64, error: *mut *mut Error) -> i32;
        pub fn tessera_scheduler_figures(scheduler: *const Scheduler, json: *mut *mut Text, error: *mut *mut Error) -> i32;
        pub fn tessera_scheduler_free(scheduler: *mut Scheduler);
        pub fn tessera_request_next(request: *mut Request, timeout_ns: i64, piece: *mut *const Piece, error: *mut *mut Error) -> i32;
        pub fn tessera_request_try_next(request: *mut Request, piece: *mut *const Piece, error: *mut *mut Error) -> i32;
        pub fn tessera_request_id(request: *const Request) -> u64;
        pub fn tessera_request_state(request: *const Request) -> i32;
        pub fn tessera_request_free(request: *mut Request);
        pub fn tessera_piece_text(piece: *const Piece, size: *mut usize) -> *const c_char;
        pub fn tessera_piece_token(piece: *const Piece) -> i32;
    }
    const _: () = assert!(std::mem::size_of::<c_int>() == 4);
}

/// Error of the library. The codes are those of docs/reference/errors.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: i32,
    /// "place: message", one line.
    pub text: String,
}
impl Error {
    pub const INVALID_ARGUMENT: i32 = 1;
    pub const INVALID_STATE: i32 = 2;
    pub const NOT_FOUND: i32 = 3;
    pub const UNSUPPORTED: i32 = 4;
    pub const CORRUPT_FILE: i32 = 5;
    pub const IO: i32 = 6;
    pub const OUT_OF_MEMORY: i32 = 7;
    pub const OVER_BUDGET: i32 = 8;
    pub const CACHE_FULL: i32 = 9;
    pub const CANCELLED: i32 = 10;
    pub const CALLBACK_FAILED: i32 = 11;
    pub const NUMERIC: i32 = 12;
    pub const INTERNAL: i32 = 13;
    pub const DEVICE_ERROR: i32 = 14;
    pub const BUSY: i32 = 15;
    pub const TOO_LATE: i32 = 16;
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl std::error::Error for Error {}

/// Calls a function of the library, which is given a place for its error.
fn call(function: impl FnOnce(*mut *mut c::Error) -> i32) -> Result<(), Error> {
    let mut error = ptr::null_mut();
    let code = function(&mut error);
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the views of an error live until it is freed; an error of NULL has code 0 and an empty text.
    unsafe {
        let text = CStr::from_ptr(c::tessera_error_text(error)).to_string_lossy().into_owned();
        debug_assert!(error.is_null() || c::tessera_error_code(error) == code);
        c::tessera_error_free(error);
        Err(Error { code, text })
    }
}

/// Copies a text of the library, and frees the text.
unsafe fn take_text(text: *mut c::Text) -> String {
    let bytes = slice::from_raw_parts(c::tessera_text_data(text).cast(), c::tessera_text_size(text));
    let copy = String::from_utf8_lossy(bytes).into_owned();
    c::tessera_text_free(text);
    copy
}

struct EngineHandle(*mut c::Engine);
// SAFETY: functions of an engine may be called from any thread.
unsafe impl Send for EngineHandle {}
unsafe impl Sync for EngineHandle {}
impl Drop for EngineHandle {
    fn drop(&mut self) {
        unsafe { c::tessera_engine_free(self.0) }
    }
}

/// A loaded model. A clone is the same model; the last one frees it.
#[derive(Clone)]
pub struct Engine(Arc<EngineHandle>);

impl Engine {
    /// Loads a GGUF file, or a folder of Hugging Face. Takes as long as reading the file.
    pub fn load(path: &str, options: &str) -> Result<Engine, Error> {
        let given = c::EngineOptions {
            size: std::mem::size_of::<c::EngineOptions>(),
            json: options.as_ptr().cast(),
            json_size: options.len(),
            stop: ptr::null(),
            user: ptr::null_mut(),
            drop: None,
            progress: None,
            log: None,
            parallel_for: None,
            concurrency: 0,
            cuda_stream: ptr::null_mut(),
        };
        let mut engine = ptr::null_mut();
        call(|error| unsafe { c::tessera_check_version(c::ABI_VERSION, c::API_VERSION, error) })?;
        call(|error| unsafe { c::tessera_engine_load(path.as_ptr().cast(), path.len(), &given, &mut engine, error) })?;
        Ok(Engine(Arc::new(EngineHandle(engine))))
    }

    /// Returns the tokens of a text, framed as the model wants it if the text begins a sequence.
    pub fn encode(&self, text: &str, begins: bool) -> Result<Vec<i32>, Error> {
        let bos = if begins { c::BOS_AS_MODEL } else { c::BOS_NEVER };
        let mut tokens = ptr::null_mut();
        call(|error| unsafe { c::tessera_encode(self.0 .0, text.as_ptr().cast(), text.len(), bos, 0, &mut tokens, error) })?;
        // SAFETY: the view lives until the tokens are freed, and is NULL for no tokens.
        unsafe {
            let count = c::tessera_tokens_count(tokens);
            let copy = if count == 0 { Vec::new() } else { slice::from_raw_parts(c::tessera_tokens_data(tokens), count).to_vec() };
            c::tessera_tokens_free(tokens);
            Ok(copy)
        }
    }

    /// Returns the text of tokens that begin a sequence, without control tokens.
    pub fn decode(&self, tokens: &[i32]) -> Result<String, Error> {
        let mut text = ptr::null_mut();
        call(|error| unsafe { c::tessera_decode(self.0 .0, tokens.as_ptr(), tokens.len(), 0, 0, &mut text, error) })?;
        Ok(unsafe { take_text(text) })
    }
}

/// Computes many requests of one engine together. Dropping the scheduler ends its thread and cancels its requests.
pub struct Scheduler {
    handle: *mut c::Scheduler,
    engine: Engine,
}
// SAFETY: submit, cancel and figures may be called from any thread. start() is a call of the owner, so it takes `&mut self`.
unsafe impl Send for Scheduler {}
unsafe impl Sync for Scheduler {}

type Wake = Box<dyn Fn() + Send + Sync>;
extern "C" fn wake(user: *mut c_void) {
    unsafe { (*user.cast::<Wake>())() }
}
extern "C" fn drop_wake(user: *mut c_void) {
    unsafe { drop(Box::from_raw(user.cast::<Wake>())) }
}

impl Scheduler {
    pub fn new(engine: &Engine, options: &str) -> Result<Scheduler, Error> {
        let given = c::SchedulerOptions {
            size: std::mem::size_of::<c::SchedulerOptions>(),
            json: options.as_ptr().cast(),
            json_size: options.len(),
            user: ptr::null_mut(),
            drop: None,
            clock: None,
            on_event: None,
        };
        let mut handle = ptr::null_mut();
        call(|error| unsafe { c::tessera_scheduler_create(engine.0 .0, &given, &mut handle, error) })?;
        Ok(Scheduler { handle, engine: engine.clone() })
    }

    /// Starts the library's thread, which computes from now on.
    pub fn start(&mut self) -> Result<(), Error> {
        call(|error| unsafe { c::tessera_scheduler_start(self.handle, error) })
    }

    /// Submits a text; does not wait for its answer.
    pub fn submit(&self, prompt: &str, options: &str) -> Result<Request, Error> {
        self.submit_tokens(&self.engine.encode(prompt, true)?, options, None)
    }

    /// Submits a text. The library's thread calls `ready` when there is something to read, and not again until try_next() has returned
    /// TryNext::Nothing or TryNext::Ended. `ready` may only wake the reader; it must not use the scheduler or the request, nor panic.
    pub fn submit_waking(&self, prompt: &str, options: &str, ready: impl Fn() + Send + Sync + 'static) -> Result<Request, Error> {
        self.submit_tokens(&self.engine.encode(prompt, true)?, options, Some(Box::new(ready)))
    }

    fn submit_tokens(&self, tokens: &[i32], options: &str, ready: Option<Wake>) -> Result<Request, Error> {
        let on_ready = ready.as_ref().map(|_| wake as extern "C" fn(*mut c_void));
        let given = c::SubmitOptions {
            size: std::mem::size_of::<c::SubmitOptions>(),
            json: options.as_ptr().cast(),
            json_size: options.len(),
            sampler: ptr::null(),
            stop: ptr::null(),
            drop: ready.as_ref().map(|_| drop_wake as extern "C" fn(*mut c_void)),
            user: ready.map_or(ptr::null_mut(), |wake| Box::into_raw(Box::new(wake)).cast()), // the library calls drop_wake once
            on_ready,
        };
        let mut handle = ptr::null_mut();
        call(|error| unsafe {
            c::tessera_scheduler_submit(self.handle, tokens.as_ptr(), tokens.len(), ptr::null_mut(), &given, &mut handle, error)
        })?;
        Ok(Request { handle, ended: false })
    }

    /// Cancels a request by its number, from any thread.
    pub fn cancel(&self, id: u64) -> Result<(), Error> {
        call(|error| unsafe { c::tessera_scheduler_cancel(self.handle, id, error) })
    }

    /// Returns what the scheduler has done so far, as JSON.
    pub fn figures(&self) -> Result<String, Error> {
        let mut text = ptr::null_mut();
        call(|error| unsafe { c::tessera_scheduler_figures(self.handle, &mut text, error) })?;
        Ok(unsafe { take_text(text) })
    }
}
impl Drop for Scheduler {
    fn drop(&mut self) {
        unsafe { c::tessera_scheduler_free(self.handle) }
    }
}

/// A piece of an answer: the text that became certain with a token.
#[derive(Debug, Clone)]
pub struct Piece {
    pub text: String,
    pub token: i32,
}

/// Result of Request::try_next().
#[derive(Debug)]
pub enum TryNext {
    Piece(Piece),
    /// Nothing is ready yet.
    Nothing,
    Ended,
}

/// A request's answer. An iterator that waits for each piece; after an error it ends. Dropping the request cancels it.
pub struct Request {
    handle: *mut c::Request,
    ended: bool,
}
// SAFETY: calls that change a request take `&mut self`; id() may be called from any thread.
unsafe impl Send for Request {}
unsafe impl Sync for Request {}

impl Request {
    pub fn id(&self) -> u64 {
        unsafe { c::tessera_request_id(self.handle) }
    }

    /// Returns a piece that is ready; does not wait.
    pub fn try_next(&mut self) -> Result<TryNext, Error> {
        self.read(|request, piece, error| unsafe { c::tessera_request_try_next(request, piece, error) })
    }

    /// Waits for a piece up to `timeout`.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<TryNext, Error> {
        let wait = i64::try_from(timeout.as_nanos()).unwrap_or(c::WAIT_FOREVER);
        self.read(|request, piece, error| unsafe { c::tessera_request_next(request, wait, piece, error) })
    }

    fn read(&mut self, next: impl FnOnce(*mut c::Request, *mut *const c::Piece, *mut *mut c::Error) -> i32) -> Result<TryNext, Error> {
        // The state is read first: a request that ends behind it may still have pieces.
        let ended = unsafe { c::tessera_request_state(self.handle) } == c::REQUEST_ENDED;
        let mut piece = ptr::null();
        call(|error| next(self.handle, &mut piece, error))?;
        if piece.is_null() {
            return Ok(if ended { TryNext::Ended } else { TryNext::Nothing });
        }
        // SAFETY: a piece and its text live until the request's next call.
        unsafe {
            let mut size = 0;
            let text = c::tessera_piece_text(piece, &mut size);
            let text = String::from_utf8_lossy(slice::from_raw_parts(text.cast(), size)).into_owned();
            Ok(TryNext::Piece(Piece { text, token: c::tessera_piece_token(piece) }))
        }
    }
}
impl Iterator for Request {
    type Item = Result<Piece, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.next_timeout(Duration::MAX) {
                Ok(TryNext::Piece(piece)) => return Some(Ok(piece)),
                Ok(TryNext::Nothing) => {}
                Ok(TryNext::Ended) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
impl Drop for Request {
    fn drop(&mut self) {
        unsafe { c::tessera_request_free(self.handle) }
    }
}
