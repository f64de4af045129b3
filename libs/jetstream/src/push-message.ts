import type { Msg, MsgHdrs } from "@nats-io/transport-node";

export type StreamMessage = {
  subject: string;
  sequence: number;
  payload: Uint8Array;
  messageId: string | undefined;
  headers: MsgHdrs | undefined;
  /** Time at which the broker stored the message, in nanoseconds since 1970, rounded by the number format. */
  timeNanos: number;
};

/** Content of a message that the broker sends to a push consumer. */
type PushMessage =
  | Delivery
  | Heartbeat
  /** The broker continues after the reply, which follows when everything before was processed. */
  | { kind: "flow control" }
  | { kind: "failure"; reason: string };

export type Delivery = {
  kind: "delivery";
  message: StreamMessage;
  /** Number of this delivery, from 1. */
  delivery: number;
  /** Number of messages that follow, according to the broker. */
  pending: number;
};

export type Heartbeat = {
  kind: "heartbeat";
  /** Number of deliveries so far. */
  delivered: number;
  lastSequence: number;
  /** Subject for the reply to a flow control message that was lost. */
  stalled: string | undefined;
};

const statusIdle = 100;

export function parsePushMessage(message: Msg): PushMessage {
  const { headers } = message;
  if (headers === undefined || headers.code === 0) return parseDelivery(message);
  if (headers.code !== statusIdle)
    return { kind: "failure", reason: `the broker sent status ${headers.code}` };
  if (message.reply) return { kind: "flow control" };
  return {
    kind: "heartbeat",
    delivered: Number(headers.get("Nats-Last-Consumer") || "0"),
    lastSequence: Number(headers.get("Nats-Last-Stream") || "0"),
    stalled: headers.get("Nats-Consumer-Stalled") || undefined,
  };
}

/**
 * The reply subject of a delivery contains its position: `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream
 * sequence>.<consumer sequence>.<time>.<pending>`. Newer servers add the domain and the account before the stream, and
 * another token at the end.
 */
function parseDelivery({ subject, data: payload, headers, reply = "" }: Msg): Delivery {
  const tokens = reply.split(".");
  const first = tokens.length > 9 ? 7 : 5;
  const sequence = Number(tokens[first]);
  const messageId = headers?.get("Nats-Msg-Id") || undefined;
  return {
    kind: "delivery",
    message: {
      subject,
      sequence,
      payload,
      messageId,
      headers,
      timeNanos: Number(tokens[first + 2]),
    },
    delivery: Number(tokens[first + 1]),
    pending: Number(tokens[first + 3]),
  };
}
