import type { Grant, OrganizationChange } from "../api/schema.d.ts";
import { type Projects, scopeText } from "./grant-sentence.ts";

type Context = {
  change: OrganizationChange;
  /** The name of the user in `user_id`. */
  user: string;
  /** True if the user is the actor. */
  isOwn: boolean;
  projects: Projects;
};

/** Describes a change of people in words that follow the name of the actor: "invited bob@example.com". */
export function describePeopleChange(
  change: OrganizationChange,
  nameOf: (userId: string) => string,
  projects: Projects,
): string {
  const { user_id: userId, actor } = change;
  const wordsOf = words[change.action] ?? (() => "changed people");
  return wordsOf({
    change,
    projects,
    user: addressIn(change) ?? (userId === null ? "a group" : nameOf(userId)),
    isOwn: userId === actor.id,
  });
}

/** Words by action. A page that stays open over an upgrade can receive an action that the table lacks. */
const words: Readonly<Record<OrganizationChange["action"], (context: Context) => string>> = {
  user_created: ({ user }) => `added the user ${user}`,
  user_changed: ({ user }) => `changed the user ${user}`,
  user_deleted: ({ user }) => `deleted the user ${user}`,
  user_linked: ({ user, isOwn }) =>
    isOwn ? "joined the organization" : `linked an account to ${user}`,
  user_unlinked: ({ user }) => `unlinked the account of ${user}`,
  invited: ({ user }) => `invited ${user}`,
  invitation_withdrawn: ({ user }) => `withdrew the invitation of ${user}`,
  sign_in_link_created: ({ user }) => `created a sign-in link for ${user}`,
  granted: (context) => {
    const { holder, role } = grantIn(context, context.change.after);
    return `gave ${holder} the role ${role}`;
  },
  grant_withdrawn: (context) => {
    const { holder, role } = grantIn(context, context.change.before);
    return `revoked the role ${role} of ${holder}`;
  },
  signed_in: () => "signed in",
  signed_out: () => "signed out",
  sessions_ended: ({ user, isOwn, change }) => {
    if (change.after?.ended_by === "provider") return "was signed out by the identity provider";
    return isOwn ? "ended own sessions" : `ended the sessions of ${user}`;
  },
  passkey_added: () => "added a passkey",
  passkey_removed: () => "removed a passkey",
};

/** The name of each action, for the filter. */
export const peopleActions: Readonly<Record<OrganizationChange["action"], string>> = {
  user_created: "User added",
  user_changed: "User changed",
  user_deleted: "User deleted",
  user_linked: "Account linked",
  user_unlinked: "Account unlinked",
  invited: "Invited",
  invitation_withdrawn: "Invitation withdrawn",
  sign_in_link_created: "Sign-in link created",
  granted: "Role given",
  grant_withdrawn: "Role revoked",
  signed_in: "Signed in",
  signed_out: "Signed out",
  sessions_ended: "Sessions ended",
  passkey_added: "Passkey added",
  passkey_removed: "Passkey removed",
};

/** Returns the address in an entry of a user. Entries of roles and sign-ins contain none. */
export function addressIn({ before, after }: OrganizationChange): string | undefined {
  const email = (after ?? before)?.email;
  return typeof email === "string" ? email : undefined;
}

/** Returns the subject and the role of the grant in an entry: "ada@example.com", "editor in Web". */
function grantIn({ user, projects }: Context, values: OrganizationChange["after"]) {
  const { subject, role = "", scope } = (values ?? {}) as Partial<Grant>;
  const where = scope === undefined ? "" : ` in ${scopeText(scope, projects)}`;
  const holder = subject !== undefined && "group" in subject ? `the group ${subject.group}` : user;
  return { holder, role: role + where };
}
