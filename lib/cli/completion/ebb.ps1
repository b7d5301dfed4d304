# PowerShell completion for ebb: ebb completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName ebb -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $before = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.Extent.Text })
    # Older versions drop empty arguments: --next says that the word at the cursor is not begun.
    if ($wordToComplete -eq '') {
        $lines = @(& ebb complete --next -- @before 2>$null)
    } else {
        $lines = @(& ebb complete -- @before "$wordToComplete" 2>$null)
    }
    foreach ($line in $lines) {
        if ($line.StartsWith(':') -or $line -eq '') { continue }
        $value, $about = $line -split [char]9, 2
        if (-not $about) { $about = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $about)
    }
}
