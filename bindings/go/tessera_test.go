package tessera

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

var (
	story   = Options{"max_tokens": 40}
	endless = Options{"max_tokens": 480, "end_of_generation": "ignore"}
	schema  = Options{"max_tokens": 60, "grammar": Options{"space": "none", "order": "stated", "numbers": "plain", "json_schema": Options{
		"type":       "object",
		"properties": Options{"big": Options{"type": "boolean"}, "legs": Options{"enum": []int{2, 4}}},
		"required":   []string{"big", "legs"}, "additionalProperties": false}}}
)

// load loads the model that the environment names.
func load(t *testing.T) *Engine {
	engine, err := Load(os.Getenv("MODEL"), Options{"numerics": "invariant"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return engine
}

// read reads an answer to its end. onPiece gets the number of pieces so far.
func read(request *Request, onPiece func(int)) (string, int, error) {
	defer request.Close()
	text := ""
	for n := 1; ; n++ {
		piece, err := request.Next()
		if err == io.EOF {
			return text, n - 1, nil
		} else if err != nil {
			return text, n - 1, err
		}
		text += piece.Text
		onPiece(n)
	}
}

func nothing(int) {}

func TestErrors(t *testing.T) {
	_, err := Load("missing.gguf", nil)
	if !errors.Is(err, NotFound) || !strings.Contains(err.Error(), "missing.gguf") {
		t.Error(err)
	}
	engine := load(t)
	scheduler, err := NewScheduler(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = scheduler.Submit(context.Background(), "x", Options{"max_token": 1})
	var failure *Error
	if !errors.As(err, &failure) || failure.Code != InvalidArgument || !strings.Contains(failure.Text, "max_tokens") {
		t.Error(err)
	}
	scheduler.Close()
	scheduler.Close()
	if _, err = scheduler.Submit(context.Background(), "x", nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	engine := load(t)
	const words = "naïve 🦊"
	tokens, err := engine.Encode(words)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := engine.Decode(tokens); err != nil || strings.TrimSpace(text) != words {
		t.Error(text, err)
	}
}

// Three requests at once on one scheduler, each read by its goroutine; one of them cancelled, one held to a schema.
func TestThreeAtOnce(t *testing.T) {
	engine := load(t)
	scheduler, err := NewScheduler(engine, Options{"max_unread": 16})
	if err != nil {
		t.Fatal(err)
	}
	defer scheduler.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	submit := func(ctx context.Context, prompt string, options Options) *Request {
		request, err := scheduler.Submit(ctx, prompt, options)
		if err != nil {
			t.Fatal(err)
		}
		return request
	}
	requests := []*Request{submit(context.Background(), "Once upon a time", story), submit(ctx, "The dog", endless),
		submit(context.Background(), "The dog is", schema)}
	if err := scheduler.Start(); err != nil { // behind the submits, so that all three begin in the first step
		t.Fatal(err)
	}
	var texts [3]string
	var pieces [3]int
	var errs [3]error
	var group sync.WaitGroup
	for i, request := range requests {
		group.Add(1)
		go func(i int, request *Request) {
			defer group.Done()
			texts[i], pieces[i], errs[i] = read(request, func(n int) {
				if i == 1 && n == 3 {
					cancel()
				}
			})
		}(i, request)
	}
	group.Wait()
	t.Logf("%v pieces: %q", pieces, texts)
	if errs[0] != nil || pieces[0] <= 10 || errs[2] != nil {
		t.Error(pieces, errs)
	}
	if !errors.Is(errs[1], context.Canceled) || pieces[1] != 3 {
		t.Error(pieces[1], errs[1])
	}
	var answer struct {
		Big  *bool
		Legs *int
	}
	strict := json.NewDecoder(strings.NewReader(texts[2]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&answer); err != nil || answer.Big == nil || answer.Legs == nil || *answer.Legs != 2 && *answer.Legs != 4 {
		t.Error(texts[2], err)
	}
	figures, err := scheduler.Figures()
	if err != nil || figures["tokens"].(float64) <= figures["steps"].(float64)+4 {
		t.Error("not computed together:", figures, err)
	}

	// The same story alone; and a request that is cancelled without a context.
	if alone, _, err := read(submit(context.Background(), "Once upon a time", story), nothing); err != nil || alone != texts[0] {
		t.Errorf("%q %v", alone, err)
	}
	request := submit(context.Background(), "The dog", endless)
	if _, n, err := read(request, func(n int) {
		if n == 2 {
			request.Cancel()
		}
	}); !errors.Is(err, Cancelled) {
		t.Error(n, err)
	}
}
