import type { KeyObject } from "node:crypto";
import { type SigningService, writersOf } from "@halyard/contracts";
import type { MsgHdrs } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { createSigner, hasSignature, publicKeysById } from "./signer.ts";

/**
 * Signatures of messages. NATS permissions do not restrict who writes to a stream: a client that may create a consumer
 * can have the broker deliver any message to any subject. Therefore each service signs what it writes, and consumers
 * accept nothing else.
 *
 * The signature covers a purpose, the subject, the message id (empty without one) and the payload. A copy under
 * another subject is invalid. A copy of the whole message is a repetition, which has no effect.
 */
export const signatureHeader = "Halyard-Signature";
const messageIdHeader = "Nats-Msg-Id";
/** The message id in a dead letter, which has another message id. */
const originalIdHeader = "Halyard-Message-Id";
const purpose = "halyard message 1";

type Content = {
  subject: string;
  payload: Uint8Array | string;
  messageId?: string | undefined;
};

/** Returns the signature of a message. Undefined in development without a private key. */
export type SignMessage = (message: Content) => Promise<string | undefined>;

export function createMessageSigner(privateKey: KeyObject | undefined): SignMessage {
  if (privateKey === undefined) return async () => undefined;
  const signer = createSigner(privateKey);
  return (message) => signer.sign(signedBytes(message));
}

type ReceivedMessage = { subject: string; payload: Uint8Array; headers?: MsgHdrs | undefined };

/** The service that signed a message, or the reason why the message must not be acted on. */
export type Origin =
  /** Undefined in development without public keys. */
  | { writer: SigningService | undefined }
  /** No service that writes messages of the subject has signed it. */
  | "forged"
  /** No service writes messages of the subject. A consumer of another stream has delivered the message. */
  | "foreign";

export type VerifyMessage = (message: ReceivedMessage) => Origin;

/**
 * Creates the verification with the public keys of the services whose messages this process consumes. Without the
 * public keys of a service, as in development, a warning is logged and its subjects are not verified at all: every
 * message is accepted, without a writer, even if it has the signature of another writer of the subject. A message without
 * a signature could be of either.
 */
export function createMessageVerifier(options: {
  publicKeys: Partial<Record<SigningService, readonly KeyObject[] | undefined>>;
  logger: Logger;
}): VerifyMessage {
  const keysOf = new Map(
    Object.entries(options.publicKeys).map(([service, keys = []]) => {
      if (keys.length === 0)
        options.logger.warn(
          { service },
          "the service has no public keys: every client that can write to NATS can forge its messages",
        );
      return [service, publicKeysById(keys)];
    }),
  );
  return (message) => {
    const writers = writersOf(message.subject);
    if (writers.length === 0) return "foreign";
    if (writers.some((writer) => !keysOf.get(writer)?.size)) return { writer: undefined };
    const signature = message.headers?.get(signatureHeader) ?? "";
    const messageId = message.headers?.get(messageIdHeader) ?? "";
    const bytes = () => signedBytes({ ...message, messageId });
    const writer = writers.find((name) =>
      hasSignature(bytes, signature, keysOf.get(name) ?? new Map()),
    );
    return writer === undefined ? "forged" : { writer };
  };
}

/** Copies what an operator needs to publish a dead letter again as its service signed it. */
export function keepSignature(original: MsgHdrs | undefined, letter: MsgHdrs): void {
  const signature = original?.get(signatureHeader);
  const messageId = original?.get(messageIdHeader);
  if (signature) letter.set(signatureHeader, signature);
  if (messageId) letter.set(originalIdHeader, messageId);
}

function signedBytes({ subject, messageId = "", payload }: Content): Uint8Array {
  return Buffer.concat([
    Buffer.from(`${purpose}\n${subject}\n${messageId}\n`),
    typeof payload === "string" ? Buffer.from(payload) : payload,
  ]);
}
