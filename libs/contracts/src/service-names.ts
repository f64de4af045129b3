/** The services. Each has a NATS user of its name, and routes of the public API. */
export const serviceNames = [
  "management",
  "sdk-edge",
  "scheduler",
  "webhook-dispatcher",
  "usage-metering",
] as const;
export type ServiceName = (typeof serviceNames)[number];
