import type { DirectoryKey } from "@halyard/api-keys";
import type { Transaction } from "@halyard/postgres";
import type { Principal } from "../access/principal.ts";
import type { Actor, Attribution, Author } from "../flags/occasion.ts";
import { readActor } from "../flags/project-store.ts";

/** The id of actors that are not users: the operator and services. */
const nilId = "00000000-0000-0000-0000-000000000000";

export const operatorActor: Actor = { id: nilId, email: "operator" };

/** Returns the actor of a change that no user requested. */
export const serviceActor = (name: string): Actor => ({ id: nilId, email: name });

/** The user of the API key and the key itself, or the operator. */
export async function attributionOf(tx: Transaction, principal: Principal): Promise<Attribution> {
  if (principal.kind === "operator") return { actor: operatorActor, apiKeyId: null };
  const { key } = principal;
  return { actor: await readActor(tx, key.userId), apiKeyId: key.id };
}

export const authorOf = (key: DirectoryKey): Author => ({ userId: key.userId, apiKeyId: key.id });
