import { inSpan, startMessaging } from "@halyard/tracing";
import type { JetStreamClient, JetStreamPublishOptions, PubAck } from "@nats-io/jetstream";
import { messageHeaders } from "./message-headers.ts";
import type { SignMessage } from "./message-signatures.ts";

/** The broker acknowledges within milliseconds. After this time the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;

/** Publishes a message without the client library's retries. After an error the message may still arrive. */
export function publishOnce(
  client: JetStreamClient,
  subject: string,
  payload: Uint8Array | string,
  options: Pick<Partial<JetStreamPublishOptions>, "msgID" | "expect" | "headers"> = {},
): Promise<PubAck> {
  return client.publish(subject, payload, {
    ...options,
    timeout: acknowledgementTimeoutMs,
    retries: 0,
  });
}

/** Publishes a message with the signature of this service. */
export async function publishSigned(
  client: JetStreamClient,
  sign: SignMessage,
  message: { subject: string; payload: string; messageId?: string },
): Promise<PubAck> {
  return publishTraced(client, { ...message, signature: await sign(message) });
}

/** Publishes a message with a span. The subject contains no ids, because it is a part of the span's name. */
export function publishTraced(
  client: JetStreamClient,
  message: { subject: string; payload: string; messageId?: string; signature?: string | undefined },
): Promise<PubAck> {
  const { subject, payload, messageId, signature } = message;
  const span = startMessaging("send", { destination: subject, messageId });
  return inSpan(span, () =>
    publishOnce(client, subject, payload, {
      ...(messageId === undefined ? {} : { msgID: messageId }),
      ...messageHeaders({ signature, trace: span?.context }),
    }),
  );
}
