import type { Transaction } from "@halyard/postgres";
import type { Principal } from "../access/principal.ts";
import type { Actor } from "../flags/occasion.ts";
import { readActor } from "../flags/project-store.ts";

/** The operator is nobody of an organization, so its changes carry an id that no user has. */
export const operatorActor: Actor = {
  id: "00000000-0000-0000-0000-000000000000",
  email: "operator",
};

/** To whom a change is attributed: the user of the key, or the operator. */
export async function actorOf(tx: Transaction, principal: Principal): Promise<Actor> {
  return principal.kind === "operator" ? operatorActor : readActor(tx, principal.key.userId);
}
