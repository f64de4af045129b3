import { fragment, isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { isUnreadable, type SealedSecret, type SecretBox } from "../secrets/secret-box.ts";
import type { SigningSecrets } from "../sending/outgoing.ts";
import type { Webhook } from "./webhook.ts";

/**
 * Opens the secret of a webhook, for comparison with another. A secret that cannot be opened, because its key is
 * not configured any more, must not prevent a new one.
 */
export function presentSecret(
  { secrets, logger }: { secrets: SecretBox; logger: Logger },
  { id, secret }: Webhook,
): string | undefined {
  if (secret === null) return undefined;
  return unlessUnreadable("secret", { id, logger }, () => secrets.open(id, secret));
}

/** The secrets to sign with at a time. Throws what opening the current one throws. */
export function signingSecrets(
  secrets: SecretBox,
  webhook: Pick<Webhook, "id" | "secret" | "previousSecret">,
  at: Date,
  logger: Logger,
): SigningSecrets {
  const { id, secret, previousSecret } = webhook;
  const current = secret === null ? null : secrets.open(id, secret);
  if (previousSecret === null || previousSecret.endsAt <= at) return { current, previous: null };
  // Receivers with the current secret receive their deliveries even if the previous one cannot be opened.
  const previous = unlessUnreadable("previous secret", { id, logger }, () =>
    secrets.open(id, previousSecret),
  );
  return { current, previous: previous ?? null };
}

/** Logs that a secret cannot be opened, and returns undefined for it. */
function unlessUnreadable<T>(
  what: string,
  { id, logger }: { id: string; logger: Logger },
  open: () => T,
): T | undefined {
  try {
    return open();
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    logger.error({ err: error, webhook_id: id }, `a webhook's ${what} cannot be read`);
    return undefined;
  }
}

/**
 * Keeps no secret longer, or under another key, than it has to be: those whose overlap has ended are
 * forgotten, and those that were sealed with an earlier key are sealed with the present one, so that the
 * earlier one can be taken out of the configuration. At the start, and every ten minutes.
 */
const pollIntervalMs = 10 * 60 * 1_000;
/** Small enough that a stop does not wait for it. */
const batchSize = 100;

type Options = { sql: Sql; secrets: SecretBox; logger: Logger };

export function startKeepingSecrets(options: Options): { stop(): Promise<void> } {
  return startInterval((signal) => keepSecrets(options, signal), {
    intervalMs: pollIntervalMs,
    beginsAtOnce: true,
    isExpected: isOutage,
    onFailure: (err) => options.logger.warn({ err }, "secrets are not sealed anew now"),
  });
}

export async function keepSecrets(options: Options, signal?: AbortSignal): Promise<void> {
  await forgetEnded(options.sql);
  // By the order of ids, so that one that cannot be opened is passed over and not found again.
  let afterId: string | undefined;
  do {
    const found = await findUnderOtherKeys(options, afterId);
    for (const webhook of found) await sealWithCurrentKey(options, webhook);
    afterId = found.length === batchSize ? found.at(-1)?.id : undefined;
  } while (afterId !== undefined && !signal?.aborted);
}

async function forgetEnded(sql: Sql): Promise<void> {
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

/** Nothing is written over a secret that was changed in the meantime. */
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

/**
 * The secret under the key that seals at present; undefined when it is already. Throws what opening
 * throws.
 */
export function reseal(
  box: SecretBox,
  webhookId: string,
  sealed: SealedSecret,
): SealedSecret | undefined {
  if (sealed.keyId === box.currentKeyId) return undefined;
  return box.seal(webhookId, box.open(webhookId, sealed));
}
