import type { JetStreamClient, JetStreamPublishOptions, PubAck } from "@nats-io/jetstream";
import { type SignMessage, signatureHeaders } from "./message-signatures.ts";

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
  const { subject, payload, messageId } = message;
  return publishOnce(client, subject, payload, {
    ...(messageId === undefined ? {} : { msgID: messageId }),
    ...signatureHeaders(await sign(message)),
  });
}
