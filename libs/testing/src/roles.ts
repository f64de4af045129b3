/** The schemas with their services, and the passwords of their roles on the test server, which only tests can reach. */
export const roles = {
  management: {
    service: "management",
    ownerPassword: "management-owner",
    runtimePassword: "management-runtime",
  },
  scheduler: {
    service: "scheduler",
    ownerPassword: "scheduler-owner",
    runtimePassword: "scheduler-runtime",
  },
  webhooks: {
    service: "webhook-dispatcher",
    ownerPassword: "webhooks-owner",
    runtimePassword: "webhooks-runtime",
  },
  usage: {
    service: "usage-metering",
    ownerPassword: "usage-owner",
    runtimePassword: "usage-runtime",
  },
} as const;

export type Schema = keyof typeof roles;

export const schemas = Object.keys(roles) as Schema[];
