import type { Grant, OrganizationChange } from "../api/schema.d.ts";
import { type Projects, scopeText } from "./grant-sentence.ts";

type Context = {
  change: OrganizationChange;
  /** The user whom the change concerns. */
  who: string;
  /** True if the actor is that user. */
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
    who: addressIn(change) ?? (userId === null ? "a group" : nameOf(userId)),
    isOwn: userId === actor.id,
  });
}

/** Words by action. A page that stays open over an upgrade can receive an action that the table lacks. */
const words: Readonly<Record<OrganizationChange["action"], (context: Context) => string>> = {
  user_created: ({ who }) => `added the user ${who}`,
  user_changed: ({ who }) => `changed the user ${who}`,
  user_deleted: ({ who }) => `removed the user ${who}`,
  user_linked: ({ who, isOwn }) =>
    isOwn ? "joined the organization" : `linked an account to ${who}`,
  user_unlinked: ({ who }) => `unlinked the account of ${who}`,
  invited: ({ who }) => `invited ${who}`,
  invitation_withdrawn: ({ who }) => `withdrew the invitation of ${who}`,
  sign_in_link_created: ({ who }) => `created a sign-in link for ${who}`,
  granted: (context) => {
    const { whose, role } = grantIn(context, context.change.after);
    return `gave ${whose} the role ${role}`;
  },
  grant_withdrawn: (context) => {
    const { whose, role } = grantIn(context, context.change.before);
    return `revoked the role ${role} of ${whose}`;
  },
  signed_in: () => "signed in",
  signed_out: () => "signed out",
  sessions_ended: ({ who, isOwn }) =>
    isOwn ? "ended own sessions" : `ended the sessions of ${who}`,
  passkey_added: () => "added a passkey",
  passkey_removed: () => "removed a passkey",
};

/** The name of each action, for the filter. */
export const peopleActions: Readonly<Record<OrganizationChange["action"], string>> = {
  user_created: "User added",
  user_changed: "User changed",
  user_deleted: "User removed",
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
function addressIn({ before, after }: OrganizationChange): string | undefined {
  const email = (after ?? before)?.email;
  return typeof email === "string" ? email : undefined;
}

/** Returns the subject and the role of the grant in an entry: "ada@example.com", "editor in Web". */
function grantIn({ who, projects }: Context, values: OrganizationChange["after"]) {
  const { subject, role = "", scope } = (values ?? {}) as Partial<Grant>;
  const where = scope === undefined ? "" : ` in ${scopeText(scope, projects)}`;
  const whose = subject !== undefined && "group" in subject ? `the group ${subject.group}` : who;
  return { whose, role: role + where };
}
