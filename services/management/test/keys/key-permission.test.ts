import { describe, expect, it } from "@jest/globals";
import { checkReachesEnvironment, type Principal } from "../../src/access/principal.ts";
import { checkMayHandle } from "../../src/keys/key.ts";

const here = "01890000-0000-7000-8000-00000000000a";
const elsewhere = "01890000-0000-7000-8000-00000000000b";
const ada = "01890000-0000-7000-8000-0000000000aa";
const bob = "01890000-0000-7000-8000-0000000000bb";

const operator: Principal = { kind: "operator" };
/** A key of a user whom roles do not bound. */
const asKey = {
  via: "key" as const,
  rights: {
    at: () => "admin" as const,
    within: () => "admin" as const,
    anywhere: () => "admin" as const,
  },
};

const serverKey = (environmentOnly: boolean): Principal => ({
  kind: "key",
  key: {
    id: "aaaaaaaaaaaaaaaa",
    kind: "server",
    organizationId: "o",
    projectId: "p",
    environmentId: here,
    userId: ada,
    environmentOnly,
    scope: "write",
    ...asKey,
    expiresAtMs: undefined,
  },
});
const wide = serverKey(false);
const bound = serverKey(true);

const principals = { operator, "a server key": wide, "an environment_only key": bound };
type Who = keyof typeof principals;

describe("issuing, rotating and revoking a key", () => {
  it.each<[Who, boolean, string, string, boolean]>([
    // Caller, whether it is allowed, the key's user, its environment, whether the key is environment_only.
    ["operator", true, ada, here, false],
    ["operator", true, bob, elsewhere, true],
    ["a server key", true, ada, here, false],
    ["a server key", true, ada, here, true],
    ["a server key", true, ada, elsewhere, false],
    ["a server key", true, ada.toUpperCase(), here, false],
    ["a server key", false, bob, here, false],
    ["a server key", false, bob, elsewhere, true],
    ["an environment_only key", true, ada, here, true],
    ["an environment_only key", false, ada, here, false],
    ["an environment_only key", false, ada, elsewhere, true],
    ["an environment_only key", false, bob, here, true],
  ])(
    "%s: %s, for user %s in environment %s, environment_only %s",
    (who, may, userId, environmentId, environmentOnly) => {
      const problem = checkMayHandle(principals[who], { environmentId, userId, environmentOnly });
      expect(problem?.rejected).toBe(may ? undefined : "AUTH_002");
    },
  );
});

describe("listing keys", () => {
  it.each<[Who, boolean, string]>([
    ["operator", true, elsewhere],
    ["a server key", true, here],
    ["a server key", true, elsewhere],
    ["an environment_only key", true, here],
    ["an environment_only key", false, elsewhere],
  ])("%s: %s, in environment %s", (who, may, environmentId) => {
    expect(checkReachesEnvironment(principals[who], environmentId)?.rejected).toBe(
      may ? undefined : "AUTH_002",
    );
  });
});
