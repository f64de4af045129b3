import { entryTemplate, parseEntryKey, snapshotBucket } from "@halyard/contracts";
import type { OutgoingMessage } from "@halyard/jetstream";
import { isTracing, parseTraceContext, type Span, startMessaging } from "@halyard/tracing";
import type { StreamName, UnsentRow } from "../outbox/unsent-rows.ts";

/** A row whose message is published, and the rows that it supersedes. */
type Sent = { row: UnsentRow; superseded: readonly UnsentRow[] };

/**
 * Publishes the messages of rows, each in a span. A span is in the trace of the row's change, and links to the changes
 * that it supersedes. A row without a trace has no span.
 */
export async function publishInSpans<Result extends { sequences: readonly number[] }>(
  stream: StreamName,
  rows: readonly Sent[],
  messages: readonly OutgoingMessage[],
  publish: (traced: readonly OutgoingMessage[]) => Promise<Result>,
): Promise<Result> {
  if (!isTracing()) return publish(messages);
  const spans = rows.map((row) => startSend(stream, row));
  let acknowledged = 0;
  try {
    const result = await publish(
      messages.map((one, at) => ({ ...one, trace: spans[at]?.context })),
    );
    acknowledged = result.sequences.length;
    return result;
  } finally {
    spans.forEach((span, at) => {
      // Messages without an acknowledgement may not be in the stream. If publishing throws, no message has one.
      if (at >= acknowledged) span?.fail("not_acknowledged");
      span?.end();
    });
  }
}

function startSend(stream: StreamName, { row, superseded }: Sent): Span | undefined {
  const parent = traceOfRow(row);
  if (parent === undefined) return undefined;
  return startMessaging("send", {
    destination: destinationOf(stream, row.subject),
    messageId: row.messageId,
    parent,
    links: superseded.flatMap((older) => traceOfRow(older) ?? []),
  });
}

const traceOfRow = ({ traceparent, tracestate }: UnsentRow) =>
  parseTraceContext(traceparent, tracestate);

function destinationOf(stream: StreamName, subject: string): string {
  if (stream === "events") return subject;
  const kind = parseEntryKey(subject)?.kind;
  return snapshotBucket.subjectPrefix + (kind === undefined ? "{key}" : entryTemplate(kind));
}
