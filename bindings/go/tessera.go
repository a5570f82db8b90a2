// Package tessera runs language models in a Go program, by cgo over the C ABI (include/tessera.h).
//
//	engine, err := tessera.Load("model.gguf", nil)
//	scheduler, err := tessera.NewScheduler(engine, nil)
//	request, err := scheduler.Submit(ctx, "Once upon a time", tessera.Options{"max_tokens": 40})
//	for {
//		piece, err := request.Next()
//		if err == io.EOF {
//			break
//		}
//		fmt.Print(piece.Text)
//	}
//
// Methods may be called by several goroutines at once. After Close, methods return an error of code InvalidArgument.
package tessera

// #cgo LDFLAGS: -ltessera-c
// #include <stdlib.h>
// #include <tessera.h>
// extern void tesseraReady(void* user);
// extern void tesseraDrop(void* user);
import "C"

import (
	"context"
	"encoding/json"
	"io"
	"runtime/cgo"
	"sync"
	"unsafe"
)

// Options are the keys of docs/reference/c-options.md. Nil gives the defaults.
type Options map[string]any

// Code says why a call failed: errors.Is(err, tessera.Busy).
type Code int32

const (
	InvalidArgument Code = C.TESSERA_INVALID_ARGUMENT
	InvalidState    Code = C.TESSERA_INVALID_STATE
	NotFound        Code = C.TESSERA_NOT_FOUND
	Unsupported     Code = C.TESSERA_UNSUPPORTED
	OutOfMemory     Code = C.TESSERA_OUT_OF_MEMORY
	CacheFull       Code = C.TESSERA_CACHE_FULL
	Cancelled       Code = C.TESSERA_CANCELLED
	Busy            Code = C.TESSERA_BUSY
)

func (code Code) Error() string { return C.GoString(C.tessera_code_name(C.int32_t(code))) }

// Error is an error of the library.
type Error struct {
	Code Code
	Text string // "place: message", one line
}

func (err *Error) Error() string { return err.Text }
func (err *Error) Unwrap() error { return err.Code }

// check turns a code and an error of the library, which it frees, into an error of Go.
func check(code C.int32_t, err *C.tessera_error) error {
	if code == C.TESSERA_OK {
		return nil
	}
	defer C.tessera_error_free(err)
	return &Error{Code(code), C.GoString(C.tessera_error_text(err))}
}

// cText returns a copy of a text in C's memory, which the caller frees.
func cText(text string) (*C.char, C.size_t) { return C.CString(text), C.size_t(len(text)) }

func (options Options) cText() (*C.char, C.size_t, error) {
	if options == nil {
		return nil, 0, nil
	}
	text, err := json.Marshal(options)
	if err != nil {
		return nil, 0, err
	}
	bytes, size := cText(string(text))
	return bytes, size, nil
}

func goText(text *C.tessera_text) string {
	defer C.tessera_text_free(text)
	return C.GoStringN(C.tessera_text_data(text), C.int(C.tessera_text_size(text)))
}

// Engine is a loaded model.
type Engine struct {
	lock   sync.RWMutex // for writing: Close
	handle *C.tessera_engine
}

// Load loads a GGUF file.
func Load(path string, options Options) (*Engine, error) {
	var failure *C.tessera_error
	if err := check(C.tessera_check_version(C.TESSERA_ABI_VERSION, C.TESSERA_API_VERSION, &failure), failure); err != nil {
		return nil, err
	}
	var given C.tessera_engine_options
	given.size = C.sizeof_tessera_engine_options
	var err error
	if given.json, given.json_size, err = options.cText(); err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(given.json))
	name, size := cText(path)
	defer C.free(unsafe.Pointer(name))
	engine := &Engine{}
	if err := check(C.tessera_engine_load(name, size, &given, &engine.handle, &failure), failure); err != nil {
		return nil, err
	}
	return engine, nil
}

// Close frees the model when the requests that use it have ended too.
func (engine *Engine) Close() {
	engine.lock.Lock()
	defer engine.lock.Unlock()
	C.tessera_engine_free(engine.handle)
	engine.handle = nil
}

// encode returns the tokens of a text that begins a sequence. The caller frees them.
func (engine *Engine) encode(text string) (*C.tessera_tokens, error) {
	engine.lock.RLock()
	defer engine.lock.RUnlock()
	bytes, size := cText(text)
	defer C.free(unsafe.Pointer(bytes))
	var tokens *C.tessera_tokens
	var failure *C.tessera_error
	err := check(C.tessera_encode(engine.handle, bytes, size, C.TESSERA_BOS_AS_MODEL, C.TESSERA_SPECIAL_AS_TEXT, &tokens, &failure), failure)
	return tokens, err
}

// Encode returns the tokens of a text that begins a sequence.
func (engine *Engine) Encode(text string) ([]int32, error) {
	tokens, err := engine.encode(text)
	if err != nil {
		return nil, err
	}
	defer C.tessera_tokens_free(tokens)
	view := unsafe.Slice((*int32)(C.tessera_tokens_data(tokens)), int(C.tessera_tokens_count(tokens)))
	return append([]int32(nil), view...), nil
}

// Decode returns the text of tokens.
func (engine *Engine) Decode(tokens []int32) (string, error) {
	engine.lock.RLock()
	defer engine.lock.RUnlock()
	var first *C.int32_t
	if len(tokens) > 0 {
		first = (*C.int32_t)(&tokens[0])
	}
	var text *C.tessera_text
	var failure *C.tessera_error
	code := C.tessera_decode(engine.handle, first, C.size_t(len(tokens)), C.TESSERA_CONTROL_OMIT, C.TESSERA_START_SEQUENCE, &text, &failure)
	if err := check(code, failure); err != nil {
		return "", err
	}
	return goText(text), nil
}

// Scheduler computes many requests of one engine together.
type Scheduler struct {
	lock   sync.RWMutex // for writing: Start, Close
	handle *C.tessera_scheduler
	engine *Engine
}

// NewScheduler makes a scheduler. Its requests are computed from Start on.
func NewScheduler(engine *Engine, options Options) (*Scheduler, error) {
	var given C.tessera_scheduler_options
	given.size = C.sizeof_tessera_scheduler_options
	var err error
	if given.json, given.json_size, err = options.cText(); err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(given.json))
	engine.lock.RLock()
	defer engine.lock.RUnlock()
	scheduler := &Scheduler{engine: engine}
	var failure *C.tessera_error
	if err := check(C.tessera_scheduler_create(engine.handle, &given, &scheduler.handle, &failure), failure); err != nil {
		return nil, err
	}
	return scheduler, nil
}

// Start starts the library's thread, which computes from now on.
func (scheduler *Scheduler) Start() error {
	scheduler.lock.Lock()
	defer scheduler.lock.Unlock()
	var failure *C.tessera_error
	return check(C.tessera_scheduler_start(scheduler.handle, &failure), failure)
}

// Close ends the thread after the step that it computes, and cancels all requests.
func (scheduler *Scheduler) Close() {
	scheduler.lock.Lock()
	defer scheduler.lock.Unlock()
	C.tessera_scheduler_free(scheduler.handle)
	scheduler.handle = nil
}

// Figures returns what the scheduler has done so far.
func (scheduler *Scheduler) Figures() (map[string]any, error) {
	scheduler.lock.RLock()
	defer scheduler.lock.RUnlock()
	var text *C.tessera_text
	var failure *C.tessera_error
	if err := check(C.tessera_scheduler_figures(scheduler.handle, &text, &failure), failure); err != nil {
		return nil, err
	}
	var figures map[string]any
	err := json.Unmarshal([]byte(goText(text)), &figures)
	return figures, err
}

// Submit submits a text and does not wait for its answer. The end of ctx cancels the request.
func (scheduler *Scheduler) Submit(ctx context.Context, prompt string, options Options) (*Request, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var given C.tessera_submit_options
	given.size = C.sizeof_tessera_submit_options
	var err error
	if given.json, given.json_size, err = options.cText(); err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(given.json))
	tokens, err := scheduler.engine.encode(prompt)
	if err != nil {
		return nil, err
	}
	defer C.tessera_tokens_free(tokens)

	request := &Request{ctx: ctx, ready: make(chan struct{}, 1)}
	// C may not keep a pointer of Go: it gets a place in its own memory that holds a cgo.Handle. tesseraDrop frees both.
	user := C.malloc(C.size_t(unsafe.Sizeof(cgo.Handle(0))))
	*(*cgo.Handle)(user) = cgo.NewHandle(request.ready)
	given.user = user
	given.on_ready = (*[0]byte)(C.tesseraReady)
	given.drop = (*[0]byte)(C.tesseraDrop)
	scheduler.lock.RLock()
	defer scheduler.lock.RUnlock()
	var failure *C.tessera_error
	code := C.tessera_scheduler_submit(scheduler.handle, C.tessera_tokens_data(tokens), C.tessera_tokens_count(tokens), nil, &given,
		&request.handle, &failure)
	if err := check(code, failure); err != nil {
		return nil, err
	}
	return request, nil
}

//export tesseraReady
func tesseraReady(user unsafe.Pointer) { // on the scheduler's thread, which must not wait
	select {
	case (*(*cgo.Handle)(user)).Value().(chan struct{}) <- struct{}{}:
	default: // the reader is awake already
	}
}

//export tesseraDrop
func tesseraDrop(user unsafe.Pointer) {
	(*(*cgo.Handle)(user)).Delete()
	C.free(user)
}

// Piece is a piece of an answer: the text that became certain with a token.
type Piece struct {
	Text  string
	Token int32
}

// Request is the stream of an answer.
type Request struct {
	ctx    context.Context
	ready  chan struct{} // has something in it if there is something to read
	lock   sync.Mutex
	handle *C.tessera_request
}

// Next waits for the next piece, without a thread of the system. Errors: io.EOF at the end; the context's error; an *Error.
func (request *Request) Next() (Piece, error) {
	for {
		if err := request.ctx.Err(); err != nil {
			request.Cancel()
			return Piece{}, err
		}
		piece, found, err := request.TryNext()
		if found || err != nil {
			return piece, err
		}
		select {
		case <-request.ready:
		case <-request.ctx.Done():
		}
	}
}

// TryNext returns a piece if one is ready. Errors: as those of Next.
func (request *Request) TryNext() (piece Piece, found bool, err error) {
	request.lock.Lock()
	defer request.lock.Unlock()
	ended := C.tessera_request_state(request.handle) == C.TESSERA_REQUEST_ENDED // first: what ends behind this may still have pieces
	var next *C.tessera_piece
	var failure *C.tessera_error
	if err := check(C.tessera_request_try_next(request.handle, &next, &failure), failure); err != nil {
		return Piece{}, false, err
	}
	if next == nil && ended {
		return Piece{}, false, io.EOF
	}
	if next == nil {
		return Piece{}, false, nil
	}
	var size C.size_t
	text := C.tessera_piece_text(next, &size)
	return Piece{C.GoStringN(text, C.int(size)), int32(C.tessera_piece_token(next))}, true, nil
}

// Cancel ends the request; Next then returns an error of code Cancelled.
func (request *Request) Cancel() {
	request.lock.Lock()
	defer request.lock.Unlock()
	C.tessera_request_cancel(request.handle)
}

// Close frees the request, and cancels it if it has not ended.
func (request *Request) Close() {
	request.lock.Lock()
	defer request.lock.Unlock()
	C.tessera_request_free(request.handle)
	request.handle = nil
}
