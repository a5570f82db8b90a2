//! Three requests at once on one scheduler, from a loop that is woken; one of them cancelled, one held to a schema: test MODEL
#[allow(dead_code)] // the file offers more than this program uses
mod tessera;
use std::sync::{mpsc, Arc};
use tessera::{Engine, Error, Scheduler, TryNext};

const STORY: &str = r#"{"max_tokens": 40}"#;
const ENDLESS: &str = r#"{"max_tokens": 480, "end_of_generation": "ignore"}"#;
const SCHEMA: &str = r#"{"max_tokens": 60, "grammar": {"space": "none", "order": "stated", "numbers": "plain", "json_schema": {"type": "object",
  "properties": {"big": {"type": "boolean"}, "legs": {"enum": [2, 4]}},
  "required": ["big", "legs"], "additionalProperties": false}}}"#;

/// Reads {"big":true,"legs":4}.
fn parse(text: &str) -> Option<(bool, u32)> {
    let (big, legs) = text.strip_prefix("{\"big\":")?.strip_suffix('}')?.split_once(",\"legs\":")?;
    Some((big.parse().ok()?, legs.parse().ok().filter(|legs| [2, 4].contains(legs))?))
}

/// Returns a number of the scheduler's figures.
fn figure(figures: &str, name: &str) -> u64 {
    let rest = figures.split_once(&format!("\"{name}\": ")).expect(name).1;
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

fn main() -> Result<(), Error> {
    let model = std::env::args().nth(1).expect("usage: test MODEL");
    let error = Engine::load("missing.gguf", "").err().expect("a missing file is an error");
    assert!(error.code == Error::NOT_FOUND && error.to_string().contains("missing.gguf"), "{error:?}");
    let engine = Engine::load(&model, r#"{"numerics": "invariant"}"#)?;
    let words = "naïve 🦊";
    assert_eq!(engine.decode(&engine.encode(words, true)?)?.trim_start(), words);

    let mut scheduler = Scheduler::new(&engine, r#"{"max_unread": 16}"#)?;
    let dropped = Arc::new(());
    let held = dropped.clone();
    let error = scheduler.submit_waking("x", r#"{"max_token": 1}"#, move || drop(held.clone())).err().expect("a misspelt key is an error");
    assert!(error.code == Error::INVALID_ARGUMENT && error.to_string().contains("max_tokens"), "{error:?}");
    assert_eq!(Arc::strong_count(&dropped), 1, "the closure of a refused request is dropped");

    // The loop of this program: a channel of the numbers of requests that can be read.
    let (sender, ready) = mpsc::channel();
    let mut requests = Vec::new();
    for (i, (prompt, options)) in [("Once upon a time", STORY), ("The dog", ENDLESS), ("The dog is", SCHEMA)].into_iter().enumerate() {
        let (sender, held) = (sender.clone(), dropped.clone());
        requests.push(scheduler.submit_waking(prompt, options, move || {
            let _ = (sender.send(i), &held); // an error: the loop has ended
        })?);
    }
    scheduler.start()?; // behind the submits, so that all three begin in the first step
    let mut texts = [String::new(), String::new(), String::new()];
    let mut pieces = [0; 3];
    let mut ended = [false; 3];
    while ended != [true; 3] {
        let i = ready.recv().expect("the senders live as long as the requests");
        while !ended[i] {
            match requests[i].try_next() {
                Ok(TryNext::Piece(piece)) => {
                    texts[i] += &piece.text;
                    pieces[i] += 1;
                    if i == 1 && pieces[i] == 3 {
                        scheduler.cancel(requests[i].id())?;
                    }
                }
                Ok(TryNext::Nothing) => break,
                Ok(TryNext::Ended) => ended[i] = true,
                Err(error) => {
                    assert!(i == 1 && error.code == Error::CANCELLED, "request {i}: {error:?}");
                    ended[i] = true;
                }
            }
        }
    }
    println!("{pieces:?} pieces: {texts:?}");
    assert!(pieces[0] > 10 && (3..480).contains(&pieces[1]));
    assert!(parse(&texts[2]).is_some(), "{}", texts[2]);
    let figures = scheduler.figures()?;
    assert!(figure(&figures, "tokens") > figure(&figures, "steps") + 4, "computed together: {figures}");
    drop(requests);

    // The same story alone, by the iterator, on another thread.
    let alone = std::thread::scope(|scope| {
        scope.spawn(|| scheduler.submit("Once upon a time", STORY)?.map(|piece| Ok(piece?.text)).collect::<Result<String, Error>>()).join()
    });
    assert_eq!(alone.expect("no panic")?, texts[0]);
    drop(scheduler);
    assert_eq!(Arc::strong_count(&dropped), 1, "every closure is dropped");
    println!("ok");
    Ok(())
}
