-- User code: runs as the sender, under the sender's search_path, hence no set clause and everything
-- qualified down to the operators (see "whose code runs" in the security notes).
create or replace function sb_internal._run_validator(
  validator text,
  validation text,
  bodies bytea[]
)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
as $$
declare
  body pg_catalog.bytea;
  verdict boolean;
begin
  foreach body in array _run_validator.bodies loop
    continue when pg_catalog.octet_length(body) operator(pg_catalog.=) 0;
    begin
      if _run_validator.validation operator(pg_catalog.=) 'VALID_XML' then
        execute 'select ' operator(pg_catalog.||) _run_validator.validator operator(pg_catalog.||) '($1)'
           into verdict
          using xmlparse(content pg_catalog.convert_from(body, 'UTF8'));
      else
        execute 'select ' operator(pg_catalog.||) _run_validator.validator operator(pg_catalog.||) '($1)'
           into verdict
          using pg_catalog.convert_from(body, 'UTF8')::pg_catalog.jsonb;
      end if;
    exception
      -- A validator that raises says no. That it was stopped or kept waiting, lacks a right, is not there or
      -- could do with a second try is not its verdict, which would end the conversation for good.
      when insufficient_privilege or undefined_function or invalid_schema_name or lock_not_available
        or transaction_rollback or operator_intervention or insufficient_resources or system_error or internal_error
      then
        raise;
      when others or assert_failure then
        return false;
    end;
    if verdict is not true then
      return false;
    end if;
  end loop;
  return true;
end
$$;
comment on function sb_internal._run_validator(text, text, bytea[]) is
  'Runs a validator function on each body, with the rights and the search path of whoever sends; raising or null is no. What says nothing about the body (a cancel, a deadlock, a missing right or function …) is raised.';
revoke all on function sb_internal._run_validator(text, text, bytea[]) from public;
