create or replace function sb_internal._error_body(
  namespace text,
  code integer,
  description text
)
  returns bytea
  language plpgsql
  immutable
  parallel safe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_to(
    format(
      '<?xml version="1.0"?><Error xmlns="%s"><Code>%s</Code><Description>%s</Description></Error>',
      replace(replace(replace(_error_body.namespace, '&', '&amp;'), '<', '&lt;'), '"', '&quot;'),
      _error_body.code,
      -- XML 1.0 cannot hold most control characters, not even as references; U+FFFD is written as a
      -- reference because a database that is not in UTF-8 cannot hold it. A bare CR would be read
      -- as LF.
      replace(
        regexp_replace(
          replace(
            replace(replace(_error_body.description, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'
          ),
          $re$[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]$re$,
          '&#xFFFD;',
          'g'
        ),
        chr(13),
        '&#13;'
      )
    ),
    'UTF8'
  );
end
$$;
comment on function sb_internal._error_body(text, integer, text) is
  'The body of an Error message: XML in UTF-8, Code then Description. Characters that XML cannot hold become U+FFFD.';
revoke all on function sb_internal._error_body(text, integer, text) from public;
