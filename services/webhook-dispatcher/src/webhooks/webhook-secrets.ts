import { fragment, isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { isUnreadable, type SealedSecret, type SecretBox } from "../secrets/secret-box.ts";
import type { SigningSecrets } from "../sending/outgoing.ts";
import type { Webhook } from "./webhook.ts";

/**
 * Decrypts the secret of a webhook, for comparison with another. Returns undefined if the key is not configured any
 * more, because that must not prevent the user from setting a new secret.
 */
export function presentSecret(
  { secrets, logger }: { secrets: SecretBox; logger: Logger },
  { id, secret }: Webhook,
): string | undefined {
  if (secret === null) return undefined;
  return unlessUnreadable("secret", { id, logger }, () => secrets.open(id, secret));
}

/** Returns the secrets that sign an attempt at a time. Throws if the current secret cannot be decrypted. */
export function signingSecrets(
  secrets: SecretBox,
  webhook: Pick<Webhook, "id" | "secret" | "previousSecret">,
  at: Date,
  logger: Logger,
): SigningSecrets {
  const { id, secret, previousSecret } = webhook;
  const current = secret === null ? null : secrets.open(id, secret);
  if (previousSecret === null || previousSecret.endsAt <= at) return { current, previous: null };
  // Receivers with the current secret receive their deliveries even if the previous one cannot be decrypted.
  const previous = unlessUnreadable("previous secret", { id, logger }, () =>
    secrets.open(id, previousSecret),
  );
  return { current, previous: previous ?? null };
}

/** Runs `open`. If the secret cannot be decrypted, logs the error and returns undefined. */
function unlessUnreadable<T>(
  what: string,
  { id, logger }: { id: string; logger: Logger },
  open: () => T,
): T | undefined {
  try {
    return open();
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    logger.error({ err: error, webhook_id: id }, `a webhook's ${what} cannot be decrypted`);
    return undefined;
  }
}

/**
 * Interval of the maintenance of secrets, which also runs at the start. It deletes previous secrets whose overlap has
 * ended. It encrypts secrets of earlier keys with the current key, so that the operator can remove the earlier keys.
 */
const pollIntervalMs = 10 * 60 * 1_000;
/** Number of webhooks per batch. It is small, so that a stop does not wait long. */
const batchSize = 100;

type Options = { sql: Sql; secrets: SecretBox; logger: Logger };

export function startSecretMaintenance(options: Options): { stop(): Promise<void> } {
  return startInterval((signal) => maintainSecrets(options, signal), {
    intervalMs: pollIntervalMs,
    beginsAtOnce: true,
    isExpected: isOutage,
    onFailure: (err) => options.logger.warn({ err }, "secrets could not be re-encrypted; retrying"),
  });
}

export async function maintainSecrets(options: Options, signal?: AbortSignal): Promise<void> {
  await deleteEnded(options.sql);
  // Pages by id, so that a secret that cannot be decrypted is found only once.
  let afterId: string | undefined;
  do {
    const found = await findUnderOtherKeys(options, afterId);
    for (const webhook of found) await sealWithCurrentKey(options, webhook);
    afterId = found.length === batchSize ? found.at(-1)?.id : undefined;
  } while (afterId !== undefined && !signal?.aborted);
}

async function deleteEnded(sql: Sql): Promise<void> {
  await sql`
    update webhooks
    set previous_secret = null, previous_secret_key_id = null, previous_secret_ends_at = null
    where previous_secret_ends_at < now()`;
}

type Sealed = {
  id: string;
  secret: Buffer | null;
  secretKeyId: string | null;
  previousSecret: Buffer | null;
  previousSecretKeyId: string | null;
};

async function findUnderOtherKeys(
  { sql, secrets }: Options,
  afterId: string | undefined,
): Promise<Sealed[]> {
  const { currentKeyId } = secrets;
  return sql<Sealed[]>`
    select id, secret, secret_key_id as "secretKeyId", previous_secret as "previousSecret",
      previous_secret_key_id as "previousSecretKeyId"
    from webhooks
    where (secret_key_id <> ${currentKeyId} or previous_secret_key_id <> ${currentKeyId})
      ${afterId === undefined ? fragment`` : fragment`and id > ${afterId}`}
    order by id
    limit ${batchSize}`;
}

/** Re-encrypts the secrets of a webhook. Does not overwrite a secret that was changed meanwhile. */
async function sealWithCurrentKey(options: Options, webhook: Sealed): Promise<void> {
  const { sql } = options;
  const { id, secret, previousSecret } = webhook;
  const present = resealed(options, id, secret, webhook.secretKeyId);
  if (present !== undefined)
    await sql`
      update webhooks set secret = ${present.bytes}, secret_key_id = ${present.keyId}
      where id = ${id} and secret = ${secret}`;
  const previous = resealed(options, id, previousSecret, webhook.previousSecretKeyId);
  if (previous !== undefined)
    await sql`
      update webhooks
      set previous_secret = ${previous.bytes}, previous_secret_key_id = ${previous.keyId}
      where id = ${id} and previous_secret = ${previousSecret}`;
}

function resealed(
  { secrets, logger }: Options,
  webhookId: string,
  bytes: Buffer | null,
  keyId: string | null,
): SealedSecret | undefined {
  if (bytes === null || keyId === null) return undefined;
  return unlessUnreadable("secret", { id: webhookId, logger }, () =>
    reseal(secrets, webhookId, { bytes, keyId }),
  );
}

/** Encrypts a secret with the current key; undefined if it already is. Throws if the secret cannot be decrypted. */
export function reseal(
  box: SecretBox,
  webhookId: string,
  sealed: SealedSecret,
): SealedSecret | undefined {
  if (sealed.keyId === box.currentKeyId) return undefined;
  return box.seal(webhookId, box.open(webhookId, sealed));
}
