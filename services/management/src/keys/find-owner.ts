import { isDemoUser } from "@halyard/contracts";
import type { Transaction } from "@halyard/postgres";
import { type Refusal, refuse } from "@halyard/service";
import type { User } from "../users/user.ts";
import { holdUser } from "../users/user-store.ts";

/** Returns the user that a new key belongs to. */
export async function findOwner(
  tx: Transaction,
  address: { organizationId: string; userId: string },
  { allowDemoUser }: { allowDemoUser: boolean },
): Promise<User | Refusal> {
  const user = await holdUser(tx, address);
  if (user === undefined)
    return refuse("VALIDATION_001", "/user_id must be a user of the project's organization");
  if (allowDemoUser || !isDemoUser(user)) return user;
  return refuse(
    "VALIDATION_001",
    "/user_id must not be a demo user: production does not start with keys of one",
  );
}
