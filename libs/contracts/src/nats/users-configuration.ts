import { type NatsUser, natsRightsOf, natsUsers } from "./rights.ts";

/**
 * Returns the users as a part of a NATS server configuration. A password is a value in its syntax: a quoted string, or
 * a dollar sign and the name of an environment variable.
 */
export function natsUsersConfiguration(options: {
  passwordOf: (user: NatsUser) => string;
}): string {
  const entries = natsUsers.map((user) => indent(userEntry(user, options.passwordOf(user)), 4));
  return ["authorization {", "  users: [", ...entries, "  ]", "}", ""].join("\n");
}

function userEntry(user: NatsUser, password: string): string {
  const { publish, subscribe } = natsRightsOf(user);
  return [
    "{",
    `  user: ${JSON.stringify(user)}`,
    `  password: ${password}`,
    "  permissions: {",
    `    publish: { allow: ${subjectList(publish)} }`,
    `    subscribe: { allow: ${subjectList(subscribe)} }`,
    "  }",
    "}",
  ].join("\n");
}

function subjectList(subjects: readonly string[]): string {
  const lines = subjects.map((subject) => `      ${JSON.stringify(subject)}`);
  return ["[", ...lines, "    ]"].join("\n");
}

function indent(text: string, spaces: number): string {
  return text.replaceAll(/^/gm, " ".repeat(spaces));
}
