// Package testdata holds the input that programs of this repository bring along.
package testdata

import _ "embed"

// ExpenseReports is expense-reports.json, the input of `sbactivator demo`.
//
//go:embed expense-reports.json
var ExpenseReports []byte
