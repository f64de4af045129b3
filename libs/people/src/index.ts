export {
  type AuthenticateMember,
  createMemberAuthentication,
  createSessionAuthentication,
} from "./authenticate-member.ts";
export {
  type Caller,
  type Callers,
  checkRecent,
  createCallers,
  type FoundSession,
  isSameOrigin,
  missingRole,
  type People,
} from "./callers.ts";
export { findPeopleComplete, followPeople } from "./follow-people.ts";
export {
  createPeopleDirectory,
  type LiveSession,
  type MemberUser,
  type PeopleDirectory,
} from "./people-directory.ts";
export {
  createPlaces,
  type FindPlace,
  type FindProtected,
  type ProtectedEnvironment,
} from "./places.ts";
export {
  includes,
  type Place,
  rightsOfKey,
  roleAnywhere,
  roleAt,
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
