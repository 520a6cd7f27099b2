//! `qloak top`: what happens now, looked at again and again.
//!
//! `sample` turns two pictures into rates, `view` and `columns` draw them on a terminal, `plain` writes them where there is none.
//! The network is asked on a task of its own, so that a door that does not answer never holds up a key press.

mod columns;
mod plain;
mod sample;
mod view;

use std::{io::IsTerminal, time::Duration};

use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use self::sample::Sample;
use super::{
    picture::{Answerer, Source},
    service,
};
use crate::{
    error::{Error, Outcome},
    limits, output,
};

/// Watch links, channels, rates, keys and alarms as they change; q quits
///
/// Where standard output is no terminal, the picture is printed again and again instead.
#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    source: Source,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    every: f64,
    /// Print the picture once and end; rates are those of one interval
    #[arg(long)]
    once: bool,
}

/// What a look gave, or why it gave nothing.
type Look = Result<qloak_api::control::Overview, String>;

impl Top {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        if !limits::TOP_EVERY_S.contains(&self.every) {
            return Err(Error::Usage(format!(
                "--every {} is not among 0.1 to 3600 seconds",
                self.every
            )));
        }
        let every = Duration::from_secs_f64(self.every);
        let answerer = self.source.answerer()?;
        service::block_on(async {
            // The first look fails with words rather than an empty screen.
            let mut sample = Sample::new(answerer.overview().await?);
            if json || self.once || !std::io::stdout().is_terminal() {
                self.print(&answerer, &mut sample, every, json).await?;
            } else {
                draw(answerer, sample, every).await?;
            }
            Ok(Outcome::Well)
        })
    }

    async fn print(
        &self,
        answerer: &Answerer,
        sample: &mut Sample,
        every: Duration,
        json: bool,
    ) -> Result<(), Error> {
        loop {
            tokio::time::sleep(every).await;
            sample.update(answerer.overview().await?);
            if json {
                output::json(&sample.document())?;
            } else {
                output::text_line(&plain::picture(answerer.who(), sample))?;
            }
            if self.once {
                return Ok(());
            }
        }
    }
}

/// Draws until q is pressed.
async fn draw(answerer: Answerer, mut sample: Sample, every: Duration) -> Result<(), Error> {
    let failed = |error| Error::System {
        what: "use the terminal",
        error,
    };
    let who = answerer.who().to_owned();
    let (send, mut looks) = mpsc::channel::<Look>(1);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            let look = answerer.overview().await.map_err(|error| error.to_string());
            if send.send(look).await.is_err() {
                return;
            }
        }
    });
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let mut events = terminal_events();
    let mut trouble = None;
    let outcome = loop {
        let frame = terminal.draw(|frame| view::draw(frame, &who, &sample, trouble.as_deref()));
        if let Err(error) = frame {
            break Err(failed(error));
        }
        tokio::select! {
            look = looks.recv() => match look {
                Some(Ok(overview)) => {
                    trouble = None;
                    sample.update(overview);
                }
                Some(Err(words)) => trouble = Some(words),
                None => break Ok(()),
            },
            event = events.recv() => match event {
                Some(Ok(event)) if is_quit(&event) => break Ok(()),
                // Any other key, or a new size of the window: drawn anew.
                Some(Ok(_)) => {}
                Some(Err(error)) => break Err(failed(error)),
                None => break Ok(()),
            },
        }
    };
    ratatui::restore();
    outcome
}

fn is_quit(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    key.kind != KeyEventKind::Release
        && (interrupt || matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc))
}

/// Keys and changes of the window's size, read on a thread that ends when nobody listens any more.
fn terminal_events() -> mpsc::Receiver<std::io::Result<Event>> {
    let (send, receive) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !send.is_closed() {
            let event = match event::poll(Duration::from_millis(100)) {
                Ok(true) => event::read(),
                Ok(false) => continue,
                Err(error) => Err(error),
            };
            let failed = event.is_err();
            if send.blocking_send(event).is_err() || failed {
                return;
            }
        }
    });
    receive
}
