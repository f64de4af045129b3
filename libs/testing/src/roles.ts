/** Passwords of the services' roles on the test server, which nobody but the tests can reach. */
export const roles = {
  management: { ownerPassword: "management-owner", runtimePassword: "management-runtime" },
} as const;
