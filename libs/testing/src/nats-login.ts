import { type NatsUser, natsUsers, natsUsersConfiguration } from "@halyard/contracts";

/** Returns a password of NATS servers that tests start. These passwords protect nothing. */
const passwordOf = (user: NatsUser) => `the password of ${user}`;

/** Users of NATS servers that tests start. Tests themselves connect without a login, as the operator. */
export const natsTestUsers = [
  natsUsersConfiguration({ passwordOf: (user) => JSON.stringify(passwordOf(user)) }),
  'no_auth_user: "operator"',
].join("\n");

/** Returns the NATS servers of a test with the login of a service. */
export function natsLogin(user: NatsUser, url: string) {
  return { url, user, password: passwordOf(user) };
}

/** Returns the environment variables with the login of a process; none for a process that does not use NATS. */
export function natsLoginVariables(service: string): Record<string, string> {
  const user = natsUsers.find((known) => known === service);
  return user === undefined ? {} : { NATS_USER: user, NATS_PASSWORD: passwordOf(user) };
}
