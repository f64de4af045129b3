import { z } from "zod";
import { ApiKey } from "./keys.ts";
import { defineRoute } from "./route.ts";
import { Environment, Organization, Project, User } from "./tenancy.ts";

/** The holder of the credential that authenticates a request. */
export const ServerKeyIdentity = z.strictObject({
  kind: z.literal("server_key"),
  key: ApiKey,
  user: User.pick({ id: true, email: true, name: true }),
  organization: Organization.pick({ id: true, name: true, plan: true }),
  project: Project.pick({ id: true, name: true }),
  environments: z
    .array(Environment)
    .describe("The environments that the key can change: only its own if it is `environment_only`"),
});

export const OperatorIdentity = z.strictObject({ kind: z.literal("operator") });

export const Identity = z.discriminatedUnion("kind", [ServerKeyIdentity, OperatorIdentity]);
export type Identity = z.infer<typeof Identity>;

export const getMe = defineRoute({
  service: "management",
  access: "operator_or_server_key",
  tag: "API keys",
  operationId: "getMe",
  method: "GET",
  path: "/api/v1/me",
  summary: "Read the holder of the API key or token of the request",
  description:
    "For a server key: the key itself, and its user, organization, project and environments.",
  success: { status: 200, description: "The holder of the credential", body: Identity },
});
