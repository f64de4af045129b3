import { fragment, isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { reseal } from "../secrets/reseal.ts";
import {
  BrokenSecretError,
  type SealedSecret,
  type SecretBox,
  UnknownSecretKeyError,
} from "../secrets/secret-box.ts";

/**
 * Keeps no secret longer, or under another key, than it has to be: those whose overlap has ended are
 * forgotten, and those that were sealed with an earlier key are sealed with the present one, so that the
 * earlier one can be taken out of the configuration. At the start, and every ten minutes.
 */
const lookEveryMs = 10 * 60 * 1_000;
/** Small enough that a stop does not wait for it. */
const batchSize = 100;

type Options = { sql: Sql; secrets: SecretBox; logger: Logger };

export function startKeepingSecrets(options: Options): { stop(): Promise<void> } {
  return startInterval((signal) => keepSecrets(options, () => !signal.aborted), {
    everyMs: lookEveryMs,
    beginsAtOnce: true,
    isExpected: isOutage,
    onFailure: (err) => options.logger.warn({ err }, "secrets are not sealed anew now"),
  });
}

export async function keepSecrets(options: Options, mayGoOn = () => true): Promise<void> {
  await forgetEnded(options.sql);
  // By the order of ids, so that one that cannot be opened is passed over and not found again.
  let afterId: string | undefined;
  do {
    const found = await findUnderOtherKeys(options, afterId);
    for (const webhook of found) await sealAnew(options, webhook);
    afterId = found.length === batchSize ? found.at(-1)?.id : undefined;
  } while (afterId !== undefined && mayGoOn());
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
async function sealAnew(options: Options, webhook: Sealed): Promise<void> {
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
  try {
    return reseal(secrets, webhookId, { bytes, keyId });
  } catch (error) {
    const unreadable = error instanceof UnknownSecretKeyError || error instanceof BrokenSecretError;
    if (!unreadable) throw error;
    logger.error({ err: error, webhook_id: webhookId }, "a webhook's secret cannot be read");
    return undefined;
  }
}
