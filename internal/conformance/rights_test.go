package conformance

import "testing"

// What a contract's REFERENCES are for, and how a missing right reads.
func TestReferences(t *testing.T) {
	t.Parallel()
	db, a, _ := newTalk(t)
	role := db.CreateRole(t, "role")
	if _, err := db.Superuser(t).Exec(t.Context(), "grant "+role+" to "+db.Owner); err != nil {
		t.Fatal(err)
	}
	a.Exec("select sb.create_contract('Other', '{Note}'), sb.alter_authorization('service', 'Left', $1)", role)
	s := db.SessionAs(t, "role", role)
	// Rules
	s.ExecError("42501", "select sb.alter_service('Left', add_contracts => '{Other}')")
	s.ExecError("42704", "select sb.alter_service('Left', add_contracts => '{None}')") // not there is not the same as not for you
	s.ExecError("42501", "select sb.create_service('Mine', 'LeftQueue')")
	s.ExecError("42501", "select sb.create_contract('Mine', '{Note}')")
	a.Exec("select sb.grant_references('Other', $1)", role)
	s.Exec("select sb.alter_service('Left', add_contracts => '{Other}')")
	s.ExecError("42501", "select sb.create_service('Mine', 'LeftQueue', '{Other}')")
}
