/** Somebody of an organization, to whom changes are attributed. */
export type User = {
  id: string;
  organizationId: string;
  email: string;
  name: string | null;
  createdAt: Date;
};
