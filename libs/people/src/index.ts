export { type AuthenticateMember, createMemberAuthentication } from "./authenticate-member.ts";
export {
  type Caller,
  type Callers,
  createCallers,
  type FoundSession,
  missingRole,
  type People,
  type Rights,
} from "./callers.ts";
export { findPeopleComplete, followPeople } from "./follow-people.ts";
export {
  createPeopleDirectory,
  type LiveSession,
  type MemberUser,
  type PeopleDirectory,
} from "./people-directory.ts";
export { createPlaces, type FindPlace } from "./places.ts";
export {
  includes,
  type Place,
  roleAnywhere,
  roleAt,
  roleOfKey,
  roleWithin,
} from "./rights.ts";
export {
  digestOfSecret,
  isSecretOf,
  readSessionCookie,
  type SessionCookie,
  sessionCookieName,
  setCookie,
} from "./session-cookie.ts";
