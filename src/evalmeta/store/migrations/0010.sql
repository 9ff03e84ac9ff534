-- Runs of definitions in files have the definition's full name instead of the file's path, which is in their content.
-- The trimmed characters are all but /, so that only the last part of a path is left.
UPDATE run
SET definition = replace(replace(replace(
  substr(definition, length(rtrim(definition, replace(definition, '/', ''))) + 1),
  '-meta.xml', ''), '.aiEvaluationDefinition', ''), '.aiTestingDefinition', '')
WHERE substr(content, 1, 8) = CAST('{"file":' AS BLOB)
  AND (definition LIKE '%_.aiEvaluationDefinition' OR definition LIKE '%_.aiEvaluationDefinition-meta.xml'
    OR definition LIKE '%_.aiTestingDefinition' OR definition LIKE '%_.aiTestingDefinition-meta.xml')
