import type { JetStreamClient, JetStreamPublishOptions, PubAck } from "@nats-io/jetstream";

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
