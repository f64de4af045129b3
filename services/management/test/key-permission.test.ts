import { describe, expect, it } from "@jest/globals";
import { checkReachesEnvironment, type Principal } from "../src/access/principal.ts";
import { checkMayHandle } from "../src/keys/key.ts";

const here = "01890000-0000-7000-8000-00000000000a";
const edgeIsStopping = "01890000-0000-7000-8000-00000000000b";
const ada = "01890000-0000-7000-8000-0000000000aa";
const bob = "01890000-0000-7000-8000-0000000000bb";

const operator: Principal = { kind: "operator" };
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
    expiresAtMs: undefined,
  },
});
const wide = serverKey(false);
const bound = serverKey(true);

const principals = { operator, "a server key": wide, "an environment_only key": bound };
type Who = keyof typeof principals;

describe("issuing, rotating and revoking a key", () => {
  it.each<[Who, boolean, string, string, boolean]>([
    // who, may it, whose key, where, whether that key is environment_only
    ["operator", true, ada, here, false],
    ["operator", true, bob, edgeIsStopping, true],
    ["a server key", true, ada, here, false],
    ["a server key", true, ada, here, true],
    ["a server key", true, ada, edgeIsStopping, false],
    ["a server key", true, ada.toUpperCase(), here, false],
    ["a server key", false, bob, here, false],
    ["a server key", false, bob, edgeIsStopping, true],
    ["an environment_only key", true, ada, here, true],
    ["an environment_only key", false, ada, here, false],
    ["an environment_only key", false, ada, edgeIsStopping, true],
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
    ["operator", true, edgeIsStopping],
    ["a server key", true, here],
    ["a server key", true, edgeIsStopping],
    ["an environment_only key", true, here],
    ["an environment_only key", false, edgeIsStopping],
  ])("%s: %s, in environment %s", (who, may, environmentId) => {
    expect(checkReachesEnvironment(principals[who], environmentId)?.rejected).toBe(
      may ? undefined : "AUTH_002",
    );
  });
});
