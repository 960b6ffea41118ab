//! Runs work on its own thread, so that its consumer can stop waiting.
//!
//! Plans yield between two batches ([`yielding`](super::yielding)), but a single batch of a costly expression takes as
//! long as it takes, as does an optimizer that folds one. Such work cannot be interrupted, only abandoned: its thread
//! ends at the next yield point, and nobody waits long for that. Handing work to another thread costs as much as a
//! short query, so it is done only for queries that can be cancelled
//! ([`CancelHandle::may_stop`](crate::exec::watch::CancelHandle::may_stop)).

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result as DfResult;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::{Stream, StreamExt};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};

/// How long to wait for abandoned work, so that it can release what it holds.
const GRACE: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own.
pub async fn apart<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let runtime = Handle::current();
    match spawn_blocking(move || runtime.block_on(work)).await {
        Ok(result) => result,
        Err(e) => match e.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(e) => Err(Error::internal("a thread was stopped").caused_by(e)),
        },
    }
}

/// The same batches, computed on another thread, one ahead.
pub fn batches_apart(mut batches: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let mut builder = RecordBatchReceiverStream::builder(batches.schema(), 1);
    let (sender, runtime) = (builder.tx(), Handle::current());
    let (ends, ended) = mpsc::channel();
    builder.spawn_blocking(move || {
        let _ends: mpsc::Sender<()> = ends;
        runtime.block_on(async move {
            while let Ok(place) = sender.reserve().await {
                tokio::select! {
                    batch = batches.next() => match batch {
                        Some(batch) => place.send(batch),
                        None => break,
                    },
                    () = sender.closed() => break,
                }
            }
        });
        Ok(())
    });
    let batches = builder.build();
    Box::pin(Apart { schema: batches.schema(), batches: Some(batches), ended })
}

/// Batches from another thread.
struct Apart {
    schema: SchemaRef,
    /// `None` once the consumer is gone.
    batches: Option<SendableRecordBatchStream>,
    /// Closed when the thread has dropped the plan.
    ended: mpsc::Receiver<()>,
}

impl Stream for Apart {
    type Item = DfResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.as_mut().map_or(Poll::Ready(None), |batches| batches.poll_next_unpin(cx))
    }
}

impl RecordBatchStream for Apart {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.batches = None;
        // Give up after the grace period.
        let _ = self.ended.recv_timeout(GRACE);
    }
}
