/** The credentials that each route of release 0.1 accepted. Written from its OpenAPI document, and never changes. */
type Accepted = "any key" | "server key" | "server key or operator" | "operator";

const flag = "/api/v1/flags/:id";
const state = "/api/v1/flags/:flagId/environments/:envId";
const webhook = "/api/v1/projects/:projectId/webhooks/:webhookId";
const environments = "/api/v1/projects/:projectId/environments";
const key = `${environments}/:environmentId/keys/:keyId`;
const organization = "/api/v1/organizations/:organizationId";

export const acceptedBefore: readonly (readonly [Accepted, method: string, path: string])[] = [
  ["any key", "GET", "/api/v1/sdk/flags"],
  ["any key", "POST", "/api/v1/sdk/flags"],
  ["any key", "GET", "/api/v1/sdk/evaluate"],
  ["any key", "POST", "/api/v1/sdk/evaluate"],
  ["any key", "GET", "/api/v1/sdk/stream"],
  ["any key", "POST", "/ofrep/v1/evaluate/flags"],
  ["any key", "POST", "/ofrep/v1/evaluate/flags/:key"],
  ["any key", "GET", "/api/v1/operators"],
  ["server key", "POST", "/api/v1/flags"],
  ["server key", "GET", "/api/v1/flags"],
  ["server key", "GET", flag],
  ["server key", "PATCH", flag],
  ["server key", "PUT", flag],
  ["server key", "DELETE", flag],
  ["server key", "GET", `${flag}/usage`],
  ["server key", "GET", state],
  ["server key", "PATCH", state],
  ["server key", "PUT", state],
  ["server key", "POST", `${state}/schedule`],
  ["server key", "GET", `${state}/schedule`],
  ["server key", "DELETE", `${state}/schedule`],
  ["server key", "GET", "/api/v1/schedules"],
  ["server key or operator", "GET", `${state}/history`],
  ["server key", "POST", `${state}/rollback`],
  ["server key or operator", "GET", "/api/v1/projects/:projectId/changes"],
  ["server key", "POST", "/api/v1/projects/:projectId/webhooks"],
  ["server key", "GET", "/api/v1/projects/:projectId/webhooks"],
  ["server key", "GET", webhook],
  ["server key", "PATCH", webhook],
  ["server key", "PUT", webhook],
  ["server key", "DELETE", webhook],
  ["server key", "POST", `${webhook}/test`],
  ["server key", "GET", `${webhook}/deliveries`],
  ["server key", "GET", `${webhook}/deliveries/:deliveryId`],
  ["server key", "POST", `${webhook}/deliveries/:deliveryId/redeliver`],
  ["server key", "GET", "/api/v1/usage"],
  ["server key or operator", "POST", environments],
  ["server key or operator", "GET", environments],
  ["server key or operator", "GET", `${environments}/:environmentId`],
  ["server key or operator", "POST", `${environments}/:environmentId/keys`],
  ["server key or operator", "GET", `${environments}/:environmentId/keys`],
  ["server key or operator", "GET", key],
  ["server key or operator", "DELETE", key],
  ["server key or operator", "POST", `${key}/rotate`],
  ["operator", "POST", "/api/v1/organizations"],
  ["operator", "GET", "/api/v1/organizations"],
  ["operator", "GET", organization],
  ["operator", "PATCH", organization],
  ["operator", "PUT", organization],
  ["operator", "POST", `${organization}/users`],
  ["operator", "GET", `${organization}/users`],
  ["operator", "GET", `${organization}/users/:userId`],
  ["operator", "POST", `${organization}/projects`],
  ["operator", "GET", `${organization}/projects`],
  ["operator", "GET", `${organization}/projects/:projectId`],
];

const states = "/api/v1/flags/:flagId/environments";
const issued = { kind: "server", name: "Another", environment_only: true };

/**
 * Requests, and what release 0.1 responded: to a server key of the project, and to an `environment_only` key of staging.
 * Parameters in bodies have values as in paths.
 */
export const rightsInEnvironments: readonly (readonly [
  method: string,
  path: string,
  body: object | undefined,
  statusOfProject: number,
  statusOfStaging: number,
])[] = [
  ["GET", "/api/v1/flags", undefined, 200, 200],
  ["GET", `${states}/:staging`, undefined, 200, 200],
  ["GET", `${states}/:production`, undefined, 200, 403],
  ["PATCH", `${states}/:staging`, { enabled: true }, 200, 200],
  ["PATCH", `${states}/:production`, { enabled: true }, 200, 403],
  ["GET", `${states}/:staging/history`, undefined, 200, 200],
  ["GET", `${states}/:production/history`, undefined, 200, 403],
  ["GET", `${states}/:production/schedule`, undefined, 200, 403],
  ["GET", "/api/v1/projects/:projectId/changes", undefined, 200, 200],
  ["GET", "/api/v1/projects/:projectId/webhooks", undefined, 200, 403],
  ["GET", "/api/v1/usage", undefined, 200, 200],
  ["POST", environments, { name: "preview" }, 409, 403],
  ["GET", `${environments}/:staging/keys`, undefined, 200, 200],
  ["GET", `${environments}/:production/keys`, undefined, 200, 403],
  ["POST", `${environments}/:staging/keys`, { ...issued, user_id: ":userId" }, 201, 201],
  ["POST", `${environments}/:production/keys`, { ...issued, user_id: ":userId" }, 201, 403],
  [
    "POST",
    `${environments}/:staging/keys`,
    { kind: "server", name: "All", user_id: ":userId" },
    201,
    403,
  ],
  // Keys cannot issue keys for another user.
  ["POST", `${environments}/:staging/keys`, { ...issued, user_id: ":otherUserId" }, 403, 403],
];
